// SPDX-License-Identifier: Apache-2.0
// The state in the fragment of the page's URL, such as `#region=1&ranks=5,6&log=1`. A copied URL shows the same view.

import type { Model } from "./data/model";
import type { State } from "./state";

/** Parse one parameter; returns undefined if it is out of range or malformed. */
type Parser = (text: string) => number | number[] | boolean | string | undefined;

const COUNT = /^\d{1,9}$/;
const MOST_LISTED = 10000;

function below(limit: number): Parser {
  return (text) => (COUNT.test(text) && Number(text) < limit ? Number(text) : undefined);
}

function listBelow(limit: number): Parser {
  const one = below(limit);
  return (text) => {
    const all = text.split(",", MOST_LISTED).map(one);
    return all.every((each) => typeof each === "number") ? all : undefined;
  };
}

/** Parse `count` numbers in any notation. */
function numbers(count: number): Parser {
  return (text) => {
    const all = text.split(",").map((each) => (each.trim() ? Number(each) : Number.NaN));
    return all.length === count && all.every(Number.isFinite) ? all : undefined;
  };
}

const flag: Parser = (text) => (text === "1" ? true : undefined);

function oneOf(...words: string[]): Parser {
  return (text) => (words.includes(text) ? text : undefined);
}

const word: Parser = (text) => (/^[a-z0-9-]{1,20}$/.test(text) ? text : undefined);

/** Return the parser of each member of the state. */
function parameterReaders(model: Model, runs: number): Record<keyof State, Parser> {
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
    site: below(header.sites.length),
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
    by: oneOf("time", "bytes", "share"),
    log: flag,
    theme: oneOf("light", "dark"),
    picture: word,
    used: flag,
    unfold: flag,
    open: listBelow(model.nodes),
    panel: word,
    colour: below(header.attributes.length),
    value: below(model.linkValues.length),
    turn: numbers(4),
    at: numbers(3),
  };
}

/** Parse a fragment. `model` is any run, since all runs have the same names. `runs` is the number of runs. */
export function readState(fragment: string, model: Model, runs: number): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: Record<string, unknown> = {};
  for (const [name, parse] of Object.entries(parameterReaders(model, runs))) {
    const text = given.get(name);
    const value = text === null ? undefined : parse(text);
    if (value !== undefined) state[name] = value;
  }
  return state as State;
}

/** Return the fragment of a state. */
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
