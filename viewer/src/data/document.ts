// SPDX-License-Identifier: Apache-2.0
// Decodes the page's data, which ibprof_converter/viewer/view_file.py packs (format: docs/formats/view.md).

import type { ArrayType, NumberArray } from "./arrays";
import { makeGrid } from "./attributes";
import { findSimplex } from "./link_values";
import type { FileHeader, Flows, Intervals, Model } from "./model";

const VERSION = 2;

const TYPES = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i4: Int32Array,
  u8: BigUint64Array,
  f4: Float32Array,
  f8: Float64Array,
} as const satisfies Record<ArrayType, unknown>;

/** Read the runs of a file. All runs share the arrays of the fabric. */
export async function readDocument(text: string): Promise<Model[]> {
  const packed = decodeBase64(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return decode(await new Response(stream).arrayBuffer());
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  // `fromBase64` is several times as fast as `atob`, but not all browsers have it.
  const { fromBase64 } = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (fromBase64) return fromBase64.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

export function decode(buffer: ArrayBuffer): Model[] {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as FileHeader;
  // Files without call sites have neither names nor arrays of call sites.
  header.sites ??= ["*"];
  if (header.version !== VERSION) throw new Error(`expected a document of version ${VERSION}, found ${header.version}`);
  const start = Math.ceil((4 + length) / 8) * 8;
  const arrays = new Map<string, NumberArray | BigUint64Array>();
  for (const each of header.arrays)
    arrays.set(each.name, new TYPES[each.type](buffer, start + each.offset, each.length));
  const small = (name: string): NumberArray => {
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
    nodeGroup: arrays.has("node_group") ? small("node_group") : null,
    linkValues,
    simplex: findSimplex(linkValues, links),
  };
  return header.runs.map((run, number) => {
    const has = (name: string): boolean => arrays.has(`${number}.${name}`);
    const own = (name: string): NumberArray => small(`${number}.${name}`);
    return {
      ...fabric,
      header: { ...header, ...run },
      rankNode: has("rank_node") ? own("rank_node") : new Int32Array(0),
      rankJob: has("rank_job") ? own("rank_job") : new Int32Array(0),
      rankParts: has("rank_parts") ? own("rank_parts") : null,
      flows: has("flow_source") ? readFlows(own, has("flow_site")) : null,
      load: has("load") ? big(`${number}.load`) : null,
      known: has("known") ? own("known") : null,
      intervals: has("time_rank") ? readIntervals(own, has, run.visit_regions ?? []) : null,
    };
  });
}

function readFlows(small: (name: string) => NumberArray, hasSites: boolean): Flows {
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
    site: hasSites ? small("flow_site") : new Uint16Array(small("flow_job").length),
    bytesLow: small("flow_bytes_low"),
    bytesHigh: small("flow_bytes_high"),
  };
}

function readIntervals(
  small: (name: string) => NumberArray,
  has: (name: string) => boolean,
  names: string[],
): Intervals {
  const when = (what: string): Record<"rank" | "begin" | "end", NumberArray> => ({
    rank: small(`${what}_rank`),
    begin: small(`${what}_begin`),
    end: small(`${what}_end`),
  });
  return {
    ...when("time"),
    firstPeer: small("time_first_peer"),
    lastPeer: small("time_last_peer"),
    bytes: small("time_bytes"),
    inside: has("mpi_rank") ? { ...when("mpi"), seconds: small("mpi_seconds") } : undefined,
    visits: has("visit_rank") ? { ...when("visit"), region: small("visit_region"), names } : undefined,
  };
}
