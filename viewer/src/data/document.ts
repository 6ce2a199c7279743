// SPDX-License-Identifier: Apache-2.0
// What the page was given: docs/formats/view.md, written by ibprof_converter/viewer/view_document.py.

import { type Attribute, makeGrid, type RankGrid } from "./attributes";
import { findSimplex, type LinkValue } from "./link_values";

export const NONE = -1;
/** A kind of nodes, beside 0 for adapters and 2 for routers. */
export const SWITCH = 1;
const VERSION = 2;

/** What is put on the fabric, once or several times. */
interface RunHeader {
  name: string;
  coverage: { origin: string; rails: string | null; not_seen: string[]; modelled: string[]; notes: string[] };
  bytes_total: string;
  bytes_routed: string;
  bytes_on_host: string;
  bytes_unrouted: Record<string, string>;
}

/** What all runs have in common. */
interface FileHeader {
  version: number;
  title: string;
  rails: { name: string; has_levels: boolean }[];
  node_names: string[];
  host_names: string[];
  regions: string[];
  operations: string[];
  jobs: string[];
  rank_names: string[];
  attributes: { name: string; of: "rank" | "node"; classes: string[] }[];
  grid: string | null;
  runs: RunHeader[];
  /** Of a network without traffic: what there is to say of it. */
  about?: string;
  link_values?: { name: string; unit: string }[];
  arrays: { name: string; type: keyof typeof TYPES; offset: number; length: number }[];
}

export type Header = FileHeader & RunHeader;

const TYPES = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i4: Int32Array,
  u8: BigUint64Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

export type Small = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

/** Flows, and the tables that lead them: see ibprof_converter/viewer/flow_arrays.py. */
export interface Flows {
  count: number;
  addressNode: Small;
  addressEnd: Small;
  addressColumn: Small;
  nodeTable: Small;
  table: Small;
  /** Address of each rank on each rail. */
  rankAddress: Small;
  source: Small;
  destination: Small;
  sourceRank: Small;
  destinationRank: Small;
  region: Small;
  operation: Small;
  job: Small;
  bytesLow: Small;
  bytesHigh: Small;
}

/** What ranks sent over time; a row a rank, interval and group of peers. Seconds since the first. */
export interface Intervals {
  rank: Small;
  begin: Small;
  end: Small;
  firstPeer: Small;
  lastPeer: Small;
  bytes: Small;
}

/**
 * A run on the fabric. A link end is 2 * link + end; it stands for what its node sends on the link. Links are as in
 * links.csv, end 0 is a.
 */
export interface Model {
  header: Header;
  nodes: number;
  links: number;
  nodeRail: Small;
  nodeKind: Small;
  nodeGuid: BigUint64Array;
  nodeLevel: Small;
  nodeX: Small;
  nodeY: Small;
  nodeHost: Small;
  /** Ports: their first LID, the number of LIDs that they answer to, their node. */
  lidFirst: Small;
  lidCount: Small;
  lidNode: Small;
  endNode: Small;
  endPort: Small;
  linkGbps: Small;
  /** Node of each rank on each rail. */
  rankNode: Small;
  /** Job of each rank; below 0 for ranks of other runs alone. */
  rankJob: Small;
  /** null where there are too many, or none were seen: then `load` is all there is. */
  flows: Flows | null;
  load: BigUint64Array | null;
  /** 1 for each link end that something is known of; null: of all. */
  known: Small | null;
  intervals: Intervals | null;
  attributes: Attribute[];
  grid: RankGrid | null;
  /** x, y and z of each node in space, where they have such places. */
  space: Small | null;
  linkValues: LinkValue[];
  /** 1 for each link end that leads to the other end, which does not lead back. */
  simplex: Uint8Array;
}

/** Reads the runs of a file; those on one fabric share all that is the fabric's. */
export async function readDocument(text: string): Promise<Model[]> {
  const packed = decodeBase64(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return decode(await new Response(stream).arrayBuffer());
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  // Not yet in all browsers, and several times as quick.
  const { fromBase64 } = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (fromBase64) return fromBase64.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

function decode(buffer: ArrayBuffer): Model[] {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as FileHeader;
  if (header.version !== VERSION) throw new Error(`expected a document of version ${VERSION}, found ${header.version}`);
  const start = Math.ceil((4 + length) / 8) * 8;
  const arrays = new Map<string, Small | BigUint64Array>();
  for (const each of header.arrays)
    arrays.set(each.name, new TYPES[each.type](buffer, start + each.offset, each.length));
  const small = (name: string): Small => {
    const found = arrays.get(name);
    if (!found || found instanceof BigUint64Array) throw new Error(`expected an array ${name}`);
    return found;
  };
  const big = (name: string): BigUint64Array => {
    const found = arrays.get(name);
    if (!(found instanceof BigUint64Array)) throw new Error(`expected an array ${name} of 64 bits`);
    return found;
  };
  const links = small("link_gbps").length;
  const linkValues = (header.link_values ?? []).map((each, at) => ({ ...each, value: small(`link_value_${at}`) }));
  const fabric = {
    nodes: small("node_x").length,
    links,
    nodeRail: small("node_rail"),
    nodeKind: small("node_kind"),
    nodeGuid: big("node_guid"),
    nodeLevel: small("node_level"),
    nodeX: small("node_x"),
    nodeY: small("node_y"),
    nodeHost: small("node_host"),
    lidFirst: small("lid_first"),
    lidCount: small("lid_count"),
    lidNode: small("lid_node"),
    endNode: small("end_node"),
    endPort: small("end_port"),
    linkGbps: small("link_gbps"),
    attributes: header.attributes.map((each, at) => ({ ...each, value: small(`attribute_${at}`) })),
    grid: header.grid === null ? null : makeGrid(header.grid, small("rank_place")),
    space: arrays.has("node_space") ? small("node_space") : null,
    linkValues,
    simplex: findSimplex(linkValues, links),
  };
  return header.runs.map((run, number) => {
    const has = (name: string): boolean => arrays.has(`${number}.${name}`);
    const own = (name: string): Small => small(`${number}.${name}`);
    return {
      ...fabric,
      header: { ...header, ...run },
      rankNode: has("rank_node") ? own("rank_node") : new Int32Array(0),
      rankJob: has("rank_job") ? own("rank_job") : new Int32Array(0),
      flows: has("flow_source") ? readFlows(own) : null,
      load: has("load") ? big(`${number}.load`) : null,
      known: has("known") ? own("known") : null,
      intervals: has("time_rank") ? readIntervals(own) : null,
    };
  });
}

function readFlows(small: (name: string) => Small): Flows {
  return {
    count: small("flow_source").length,
    addressNode: small("address_node"),
    addressEnd: small("address_end"),
    addressColumn: small("address_column"),
    nodeTable: small("node_table"),
    table: small("table"),
    rankAddress: small("rank_address"),
    source: small("flow_source"),
    destination: small("flow_destination"),
    sourceRank: small("flow_source_rank"),
    destinationRank: small("flow_destination_rank"),
    region: small("flow_region"),
    operation: small("flow_operation"),
    job: small("flow_job"),
    bytesLow: small("flow_bytes_low"),
    bytesHigh: small("flow_bytes_high"),
  };
}

function readIntervals(small: (name: string) => Small): Intervals {
  return {
    rank: small("time_rank"),
    begin: small("time_begin"),
    end: small("time_end"),
    firstPeer: small("time_first_peer"),
    lastPeer: small("time_last_peer"),
    bytes: small("time_bytes"),
  };
}
