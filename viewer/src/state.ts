// SPDX-License-Identifier: Apache-2.0
// All that can be chosen, as the fragment of the address: `#region=1&ranks=5,6&log=1`. A view can so be passed on.

import type { Model } from "./data/document";

/** What traffic is looked at. */
export interface Selection {
  /** Ranks, hosts that send or receive. */
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
  /** A link end, a node that the traffic passes. */
  end?: number | undefined;
  node?: number | undefined;
  /** Seconds since the first moment. */
  time?: number[] | undefined;
}

/** Which link ends are drawn and ranked. */
export interface Filter {
  rail?: number | undefined;
  /** The upper of a link's two levels. */
  level?: number | undefined;
  /** Least and greatest bytes; where runs are compared by share, parts of 10^12 of a run, and below too. */
  load?: number[] | undefined;
  /** Least and greatest difference in bytes, where a difference is shown. */
  change?: number[] | undefined;
}

/** How it is shown. */
export interface Manner {
  log?: boolean | undefined;
  theme?: string | undefined;
  picture?: string | undefined;
  /** Of several runs the one that lists are of, and the one that it is compared with. */
  run?: number | undefined;
  against?: number | undefined;
  /** How two are compared: side by side unless told. */
  compare?: Compare | undefined;
  /** What they are compared by: shares where they have different numbers of ranks, unless told. */
  by?: "bytes" | "share" | undefined;
  /** Links without traffic are not drawn. */
  used?: boolean | undefined;
  panel?: string | undefined;
  /** The attribute that nodes are coloured by. */
  colour?: number | undefined;
  /** The value that links are coloured by instead of their loads. */
  value?: number | undefined;
  /** How a picture in space is turned: a quaternion. */
  turn?: number[] | undefined;
  /** What stands in the middle of the picture, in its own units, and how many times larger than fitted. */
  at?: number[] | undefined;
}

export type Compare = "beside" | "difference" | "none";

export interface State extends Selection, Filter, Manner {}

export const SELECTION = [
  ...["ranks", "hosts", "source", "destination", "from", "to", "region", "operation", "job", "end", "node", "time"],
] as (keyof Selection)[];
export const FILTER = ["rail", "level", "load", "change"] as (keyof Filter)[];

/** The window whose address holds the state: the report's where a report frames this page, which has no address. */
export const addressed: Window = window.location.protocol === "about:" ? window.parent : window;

/** Reads a part of a fragment; undefined for what is out of range or means nothing. */
type Read = (text: string) => number | number[] | boolean | string | undefined;

const COUNT = /^\d{1,9}$/;
const MOST_LISTED = 10000;

function below(limit: number): Read {
  return (text) => (COUNT.test(text) && Number(text) < limit ? Number(text) : undefined);
}

function listBelow(limit: number): Read {
  const one = below(limit);
  return (text) => {
    const all = text.split(",", MOST_LISTED).map(one);
    return all.every((each) => typeof each === "number") ? all : undefined;
  };
}

/** Numbers, as many as told, in any notation. */
function numbers(count: number): Read {
  return (text) => {
    const all = text.split(",").map((each) => (each.trim() ? Number(each) : Number.NaN));
    return all.length === count && all.every(Number.isFinite) ? all : undefined;
  };
}

const flag: Read = (text) => (text === "1" ? true : undefined);

function oneOf(...words: string[]): Read {
  return (text) => (words.includes(text) ? text : undefined);
}

const word: Read = (text) => (/^[a-z0-9-]{1,20}$/.test(text) ? text : undefined);

/** How each part of the state is read. */
function readers(model: Model, runs: number): Record<keyof State, Read> {
  const { header } = model;
  const [ranks, hosts] = [header.rank_names.length, header.host_names.length];
  return {
    ranks: listBelow(ranks),
    hosts: listBelow(hosts),
    source: below(ranks),
    destination: below(ranks),
    from: below(hosts),
    to: below(hosts),
    region: below(header.regions.length),
    operation: below(header.operations.length),
    job: below(header.jobs.length),
    end: below(2 * model.links),
    node: below(model.nodes),
    time: numbers(2),
    rail: below(header.rails.length),
    level: below(1000),
    load: numbers(2),
    change: numbers(2),
    run: below(runs),
    against: below(runs),
    compare: oneOf("beside", "difference", "none"),
    by: oneOf("bytes", "share"),
    log: flag,
    theme: oneOf("light", "dark"),
    picture: word,
    used: flag,
    panel: word,
    colour: below(header.attributes.length),
    value: below(model.linkValues.length),
    turn: numbers(4),
    at: numbers(3),
  };
}

/** Reads a fragment; indices are of what `model` and all others of so many runs share. */
export function readState(fragment: string, model: Model, runs: number): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(readers(model, runs))) {
    const text = given.get(name);
    const value = text === null ? undefined : read(text);
    if (value !== undefined) state[name] = value;
  }
  return state as State;
}

export function writeState(state: State): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(state)) {
    if (value === undefined || value === false) continue;
    const text = value === true ? "1" : Array.isArray(value) ? value.map(shorten).join(",") : String(value);
    parts.push(`${name}=${encodeURIComponent(text).replaceAll("%2C", ",")}`);
  }
  return `#${parts.join("&")}`;
}

function shorten(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(9)));
}

/** Whether two states differ in any of some parts. */
export function differ(one: State, other: State, parts: readonly (keyof State)[]): boolean {
  return parts.some((part) => String(one[part]) !== String(other[part]));
}
