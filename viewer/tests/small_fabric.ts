// SPDX-License-Identifier: Apache-2.0
// A fabric small enough to compute every load by hand: four hosts, two leaf switches, one spine.
//
//     host0   host1   host2   host3        nodes 0 to 3
//        \     /         \     /
//   ports 1   2           1   2
//         leaf0           leaf1            nodes 4, 5
//            3             3
//             \           /
//              1         2
//                 spine                    node 6
//
// Links 0 to 3 join hosts 0 to 3 to their leaf, link 4 leaf0 and link 5 leaf1 to the spine. The lower node of a link is
// its end 0, so link direction 2 * link leads up and 2 * link + 1 leads down.

import { LoadTable } from "../src/data/load_table";
import type { Flows, Header, Model } from "../src/data/model";
import type { Run } from "../src/run";
import { Names } from "../src/text/names";

export interface SmallFlow {
  from: number;
  to: number;
  bytes: number;
  region?: number;
  operation?: number;
}

/** Rank i is on host i. The third flow needs more than 32 bits. */
export const FLOWS: SmallFlow[] = [
  { from: 0, to: 1, bytes: 100 },
  { from: 0, to: 2, bytes: 1000, region: 1 },
  { from: 3, to: 0, bytes: 2 ** 33 + 1, operation: 1 },
];

const HEADER: Header = {
  version: 2,
  title: "small",
  rails: [{ name: "small", has_levels: true }],
  node_names: ["host0 HCA", "host1 HCA", "host2 HCA", "host3 HCA", "leaf0", "leaf1", "spine"],
  host_names: ["host0", "host1", "host2", "host3"],
  regions: ["main", "halo"],
  operations: ["SEND", "BCAST"],
  jobs: ["*"],
  sites: ["*"],
  rank_names: ["0", "1", "2", "3"],
  attributes: [],
  grid: null,
  runs: [],
  arrays: [],
  name: "",
  coverage: { origin: "", rails: null, not_seen: [], modelled: [], notes: [] },
  bytes_total: "8589935693",
  bytes_routed: "8589935693",
  bytes_on_host: "0",
  bytes_unrouted: {},
};

export function makeFlows(flows: SmallFlow[] = FLOWS): Flows {
  const column = (value: (flow: SmallFlow) => number): Int32Array => Int32Array.from(flows, value);
  return {
    count: flows.length,
    addressNode: Int32Array.of(0, 1, 2, 3),
    addressEnd: Int32Array.of(0, 2, 4, 6),
    addressColumn: Int32Array.of(0, 1, 2, 3),
    nodeTable: Int32Array.of(-1, -1, -1, -1, 0, 4, 8),
    // Egress ports to hosts 0 to 3: of leaf0, of leaf1, of the spine.
    table: Uint8Array.of(1, 2, 3, 3, 3, 3, 1, 2, 1, 1, 2, 2),
    rankAddress: Int32Array.of(0, 1, 2, 3),
    source: column(({ from }) => from),
    destination: column(({ to }) => to),
    sourceRank: column(({ from }) => from),
    destinationRank: column(({ to }) => to),
    region: column(({ region }) => region ?? 0),
    operation: column(({ operation }) => operation ?? 0),
    job: column(() => 0),
    site: column(() => 0),
    bytesLow: Float64Array.from(flows, ({ bytes }) => bytes % 2 ** 32),
    bytesHigh: Float64Array.from(flows, ({ bytes }) => Math.floor(bytes / 2 ** 32)),
  };
}

export function makeModel(changes: Partial<Model> = {}, header: Partial<Header> = {}): Model {
  return {
    header: { ...HEADER, ...header },
    nodes: 7,
    links: 6,
    nodeRail: new Uint8Array(7),
    nodeKind: Uint8Array.of(0, 0, 0, 0, 1, 1, 1),
    nodeGuid: BigUint64Array.from([0xa0n, 0xa1n, 0xa2n, 0xa3n, 0xb0n, 0xb1n, 0xc0n]),
    nodeLevel: Int32Array.of(0, 0, 0, 0, 1, 1, 2),
    nodeX: Float32Array.of(0, 1, 2, 3, 0.5, 2.5, 1.5),
    nodeY: Float32Array.of(0, 0, 0, 0, 1, 1, 2),
    nodeHost: Int32Array.of(0, 1, 2, 3, -1, -1, -1),
    lidFirst: Uint16Array.of(1, 2, 3, 4, 16),
    lidCount: Uint16Array.of(1, 1, 1, 1, 4),
    lidNode: Int32Array.of(0, 1, 2, 3, 6),
    endNode: Uint32Array.of(0, 4, 1, 4, 2, 5, 3, 5, 4, 6, 5, 6),
    endPort: Uint8Array.of(1, 1, 1, 2, 1, 1, 1, 2, 3, 1, 3, 2),
    linkGbps: Float64Array.of(100, 100, 100, 100, 100, Number.NaN),
    rankNode: Int32Array.of(0, 1, 2, 3),
    rankJob: Int32Array.of(0, 0, 0, 0),
    rankParts: null,
    flows: makeFlows(),
    load: null,
    known: null,
    intervals: null,
    attributes: [],
    grid: null,
    space: null,
    nodeGroup: null,
    linkValues: [],
    simplex: new Uint8Array(12),
    ...changes,
  };
}

export function makeRun(changes: Partial<Model> = {}, header: Partial<Header> = {}): Run {
  const model = makeModel(changes, header);
  const table = new LoadTable(model);
  return { name: model.header.name, model, table, names: new Names(model, table) };
}

/** Return the loads of all link directions as numbers. */
export function loadsOf(table: LoadTable, selection: Parameters<LoadTable["loadOfEnds"]>[0] = {}): number[] {
  const loads = table.loadOfEnds(selection);
  return Array.from({ length: loads.length }, (_, end) => Number(loads.exact(end)));
}
