// SPDX-License-Identifier: Apache-2.0
// The contents of a view in memory: the fabric, and each run on it. See docs/formats/view.md.

import type { ArrayType, NumberArray } from "./arrays";
import type { Attribute, RankGrid } from "./attributes";
import type { LinkValue } from "./link_values";

/** Index that stands for a missing node, link direction, rank or column. */
export const NONE = -1;
/** The kind of a switch in `nodeKind`; 0 is an adapter, 2 a router. */
export const SWITCH = 1;

/** The first cause of the most loaded link direction's time: an element of `diagnosis.causes` in report.json. */
export interface FirstCause {
  cause: string;
  at: string[];
  evidence: string[];
  change: string;
}

/** The verdict: the answer to `question`, as in report.json. */
export interface Verdict {
  question: string;
  text: string;
  missing: string[];
  /** True if a link limits the job and has a worthwhile remedy. */
  has_fault: boolean;
  /** The most loaded link direction. */
  end: number | null;
  first_cause: FirstCause | null;
}

/** The part of the header that describes one run. */
export interface RunHeader {
  name: string;
  coverage: { origin: string; rails: string | null; not_seen: string[]; modelled: string[]; notes: string[] };
  bytes_total: string;
  bytes_routed: string;
  bytes_on_host: string;
  bytes_unrouted: Record<string, string>;
  verdict?: Verdict;
  /** Names of regions that ranks visited, with or without traffic. */
  visit_regions?: string[];
  /** Unix time of the first interval, in seconds; only if intervals have jobs instead of ranks. */
  began_s?: number;
}

/** The part of the header that all runs share. */
export interface FileHeader {
  version: number;
  title: string;
  rails: { name: string; has_levels: boolean }[];
  node_names: string[];
  host_names: string[];
  regions: string[];
  operations: string[];
  jobs: string[];
  /** Call sites; only `*` if they are unknown. */
  sites: string[];
  rank_names: string[];
  attributes: { name: string; of: "rank" | "node"; classes: string[] }[];
  grid: string | null;
  runs: RunHeader[];
  /** Sentences on the change from one run to another; missing for a single run. */
  changes?: { from: number; to: number; text: string }[];
  /** A description of the network; only if the file has no traffic. */
  about?: string;
  link_values?: { name: string; unit: string }[];
  /** The attribute by which nodes are coloured initially. */
  colour?: number;
  arrays: { name: string; type: ArrayType; offset: number; length: number }[];
}

export type Header = FileHeader & RunHeader;

/** Flows and forwarding tables, as ibprof_converter/viewer/view_runs.py (`describe_flows`) describes them. */
export interface Flows {
  count: number;
  addressNode: NumberArray;
  addressEnd: NumberArray;
  addressColumn: NumberArray;
  nodeTable: NumberArray;
  table: NumberArray;
  /** [rank][rail], the rank's address. */
  rankAddress: NumberArray;
  source: NumberArray;
  destination: NumberArray;
  sourceRank: NumberArray;
  destinationRank: NumberArray;
  region: NumberArray;
  operation: NumberArray;
  job: NumberArray;
  site: NumberArray;
  bytesLow: NumberArray;
  bytesHigh: NumberArray;
}

/**
 * Bytes sent over time, for each rank, interval and group of peers. Times are in seconds since the first interval. If
 * the traffic has no ranks, `rank`, `firstPeer` and `lastPeer` are jobs.
 */
export interface Intervals {
  rank: NumberArray;
  begin: NumberArray;
  end: NumberArray;
  firstPeer: NumberArray;
  lastPeer: NumberArray;
  bytes: NumberArray;
  /** Time inside MPI calls; missing if not recorded. */
  inside?: InsideTimes | undefined;
  /** Visits to regions; missing if none were recorded. */
  visits?: RegionVisits | undefined;
}

/** Time inside MPI calls, for each rank and interval. */
export interface InsideTimes {
  rank: NumberArray;
  begin: NumberArray;
  end: NumberArray;
  seconds: NumberArray;
}

/** Visits of ranks to regions; `region` is an index of `names`. In nested regions, a rank visits only the innermost. */
export interface RegionVisits {
  rank: NumberArray;
  region: NumberArray;
  begin: NumberArray;
  end: NumberArray;
  names: string[];
}

/**
 * A run on the fabric. Link direction 2 * link + end is the direction in which the node at this end (0 or 1) transmits.
 * Links are in the order of links.csv; end 0 is the node of column `a_name`.
 */
export interface Model {
  header: Header;
  nodes: number;
  links: number;
  nodeRail: NumberArray;
  nodeKind: NumberArray;
  nodeGuid: BigUint64Array;
  nodeLevel: NumberArray;
  nodeX: NumberArray;
  nodeY: NumberArray;
  nodeHost: NumberArray;
  /** First LID, number of LIDs, and node of each port. */
  lidFirst: NumberArray;
  lidCount: NumberArray;
  lidNode: NumberArray;
  endNode: NumberArray;
  endPort: NumberArray;
  linkGbps: NumberArray;
  /** [rank][rail], the rank's node. */
  rankNode: NumberArray;
  /** Job of each rank; negative for a rank that only other runs have. */
  rankJob: NumberArray;
  /** [rank]: waiting, transfer and unsplit time, and the error of waiting, in seconds; null if not measured. */
  rankParts: NumberArray | null;
  /** If null (too many flows, or only port counters), `load` contains the loads. */
  flows: Flows | null;
  load: BigUint64Array | null;
  /** 1 for each link direction with a known load; null if all are known. */
  known: NumberArray | null;
  intervals: Intervals | null;
  attributes: Attribute[];
  grid: RankGrid | null;
  /** [node]: x, y and z in the three-dimensional picture; null if nodes have no such positions. */
  space: NumberArray | null;
  /** The group of each switch of a dragonfly, -1 for other nodes; null for other networks. */
  nodeGroup: NumberArray | null;
  linkValues: LinkValue[];
  /** 1 for the existing direction of a one-way link. */
  simplex: Uint8Array;
}
