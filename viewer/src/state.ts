// SPDX-License-Identifier: Apache-2.0
// The state of the page: the selection of traffic, filters and display options.

/** The traffic that is shown. */
export interface Selection {
  /** Ranks or hosts that send or receive. */
  ranks?: number[] | undefined;
  hosts?: number[] | undefined;
  /** A pair of ranks. */
  source?: number | undefined;
  destination?: number | undefined;
  /** A pair of hosts. */
  from?: number | undefined;
  to?: number | undefined;
  region?: number | undefined;
  operation?: number | undefined;
  job?: number | undefined;
  site?: number | undefined;
  /** A link direction or a node that the traffic passes. */
  end?: number | undefined;
  node?: number | undefined;
  /** A time range, in seconds since the first interval. */
  time?: number[] | undefined;
}

/** The link directions that are drawn and ranked. */
export interface Filter {
  rail?: number | undefined;
  /** The upper of the two levels that a link joins. */
  level?: number | undefined;
  /** Smallest and largest load in the measure of colours: in bytes, in 10^-12 seconds, or in 10^-12 of a share. */
  load?: number[] | undefined;
  /** Smallest and largest change, in the units of `load`, if the difference is shown. */
  change?: number[] | undefined;
}

/** Display options. */
export interface Display {
  log?: boolean | undefined;
  theme?: string | undefined;
  picture?: string | undefined;
  /** The run that lists show, and the run that it is compared with. */
  run?: number | undefined;
  against?: number | undefined;
  /** How two runs are compared; side by side by default. */
  compare?: Compare | undefined;
  /**
   * The measure. Default: shares if the runs' numbers of ranks differ; else time for colours, bytes for comparisons.
   */
  by?: "time" | "bytes" | "share" | undefined;
  /** Hide links without traffic. */
  used?: boolean | undefined;
  /** Show all nodes without traffic. */
  unfold?: boolean | undefined;
  /** Groups of nodes without traffic that stay unfolded. The lowest node index identifies a group. */
  open?: number[] | undefined;
  panel?: string | undefined;
  /** The attribute by which nodes are coloured. */
  colour?: number | undefined;
  /** The property by which links are coloured instead of their loads. */
  value?: number | undefined;
  /** The rotation of the three-dimensional picture: a quaternion. */
  turn?: number[] | undefined;
  /** Centre of the picture, in the picture's units, and zoom relative to the fitted picture. */
  at?: number[] | undefined;
}

export type Compare = "beside" | "difference" | "none";

export interface State extends Selection, Filter, Display {}

export const SELECTION = [
  ...[
    "ranks",
    "hosts",
    "source",
    "destination",
    "from",
    "to",
    "region",
    "operation",
    "job",
    "site",
    "end",
    "node",
    "time",
  ],
] as (keyof Selection)[];
export const FILTER = ["rail", "level", "load", "change"] as (keyof Filter)[];

/** Members whose changes the browser's Back undoes. Other changes, such as zooming, make no history entry. */
export const HISTORY_PARTS: readonly (keyof State)[] = [
  ...SELECTION,
  ...FILTER,
  ...(["run", "against", "compare", "by", "picture", "used", "panel", "colour", "value"] as const),
];

/** Return true if two states differ in any of the given members. */
export function differs(one: State, other: State, parts: readonly (keyof State)[]): boolean {
  return parts.some((part) => String(one[part]) !== String(other[part]));
}
