// SPDX-License-Identifier: Apache-2.0
// The layout of the picture of lines: positions of nodes and of the middles of links, y downwards.

import { type Model, SWITCH } from "../data/model";
import { railLetter } from "../text/names";
import type { Folding, Stub } from "./folding";

/** Height / width of the picture before it is fitted. In true proportion, thousands of hosts would be a thin line. */
const ASPECT = 0.62;
const BUNDLE_HEIGHT = 0.34;
const BUNDLE_STEP = 0.004;

export interface LineLayout {
  x: Float64Array;
  y: Float64Array;
  /** Middle of each link; parallel links fan out. */
  middleX: Float64Array;
  middleY: Float64Array;
  width: number;
  height: number;
  rows: { y: number; name: string }[];
  stubs: PlacedStub[];
  /** `stubOf`: the stub of each node, or -1. `drawn`: 1 for each drawn link. Both are absent if no nodes are folded. */
  stubOf?: Int32Array;
  drawn?: Uint8Array;
}

export interface PlacedStub extends Stub {
  x: number;
  y: number;
  /** Distance to the next shown node in the row; a longer name would cover links of that node. */
  gap: number;
}

export function layOutNodes(model: Model, folding: Folding | null = null): LineLayout {
  const range = (values: ArrayLike<number>): [number, number] => {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let index = 0; index < values.length; index++) {
      least = Math.min(least, values[index]);
      most = Math.max(most, values[index]);
    }
    return least <= most ? [least, most] : [0, 0];
  };
  const nodeX = folding?.x ?? model.nodeX;
  const nodeY = folding?.y ?? model.nodeY;
  const [left, right] = range(nodeX);
  const [bottom, top] = range(nodeY);
  const width = Math.max(right - left, 1);
  const levels = model.header.rails.every((rail) => rail.has_levels);
  const step = levels ? (width * ASPECT) / Math.max(top - bottom, 1) : planeStep(width, top - bottom);
  const x = Float64Array.from(nodeX, (value) => value - left);
  const y = Float64Array.from(nodeY, (value) => (top - value) * step);
  const middleX = new Float64Array(model.links);
  const middleY = new Float64Array(model.links);
  const across = spreadBundles(model);
  const crowd = Math.max(1, ...countLevels(model));
  for (let link = 0; link < model.links; link++) {
    const [a, b] = [model.endNode[2 * link], model.endNode[2 * link + 1]];
    const [place, gaps] = across(link);
    const sideways = Math.min(BUNDLE_STEP * width * gaps, (0.4 * width) / crowd);
    const within = nodeY[a] === nodeY[b];
    middleX[link] = (x[a] + x[b]) / 2 + (within ? 0 : place * sideways);
    middleY[link] = (y[a] + y[b]) / 2 + (within ? place * BUNDLE_HEIGHT * step : 0);
  }
  const [highest, lowest] = range(middleY);
  // The middles of links within the first row are above the row.
  const shift = Math.max(0, -Math.min(highest, 0));
  for (const each of [y, middleY]) for (let at = 0; at < each.length; at++) each[at] += shift;
  const height = Math.max((top - bottom) * step, lowest, 1) + shift;
  const layout = { x, y, middleX, middleY, width, height, rows: nameRows(model, y), stubs: [] };
  if (!folding) return layout;
  const { stubOf } = folding;
  const stubs = folding.stubs.map((stub) => {
    const at = stub.nodes[0];
    let gap = Number.POSITIVE_INFINITY;
    for (let node = 0; node < model.nodes; node++)
      if (stubOf[node] < 0 && y[node] === y[at]) gap = Math.min(gap, Math.abs(x[node] - x[at]));
    return { ...stub, x: x[at], y: y[at], gap };
  });
  return { ...layout, stubs, stubOf, drawn: thinOut(model, folding) };
}

/** Return 1 for each link that is drawn. Between two stubs, or a stub and a node, at most one link is drawn. */
function thinOut({ links, endNode, nodeLevel }: Model, { stubOf, stubs }: Folding): Uint8Array {
  const drawn = new Uint8Array(links);
  const seen = new Set<string>();
  for (let link = 0; link < links; link++) {
    const [a, b] = [endNode[2 * link], endNode[2 * link + 1]];
    const [atA, atB] = [stubOf[a], stubOf[b]];
    if (atA < 0 && atB < 0) {
      drawn[link] = 1;
      continue;
    }
    if (stubs[atA]?.label !== undefined || stubs[atB]?.label !== undefined) continue;
    // Do not draw all links from idle switches to the switches above, because they would cover the picture.
    const [lower, above] = nodeLevel[a] < nodeLevel[b] ? [a, atB] : [b, atA];
    if (above < 0 && nodeLevel[lower] > 0) continue;
    const key = `${atA < 0 ? -1 - a : atA} ${atB < 0 ? -1 - b : atB}`;
    if (!seen.has(key)) drawn[link] = 1;
    seen.add(key);
  }
  return drawn;
}

function planeStep(width: number, height: number): number {
  return Math.min(Math.max((width * ASPECT) / Math.max(height, 1), 0.2), width);
}

function countLevels(model: Model): number[] {
  const count: number[] = [];
  for (let node = 0; node < model.nodes; node++)
    if (model.nodeKind[node] === SWITCH) count[model.nodeLevel[node]] = (count[model.nodeLevel[node]] ?? 0) + 1;
  return count.filter((each) => each > 0);
}

/**
 * Return a function that returns a link's position (-1 to 1) among its parallel links, and the number of gaps between
 * these links.
 */
function spreadBundles(model: Model): (link: number) => [number, number] {
  const bundles = new Map<number, number[]>();
  const place = new Uint32Array(model.links);
  const key = (link: number): number => {
    const [a, b] = [model.endNode[2 * link], model.endNode[2 * link + 1]];
    return Math.min(a, b) * model.nodes + Math.max(a, b);
  };
  for (let link = 0; link < model.links; link++) {
    const bundle = bundles.get(key(link));
    if (bundle) place[link] = bundle.push(link) - 1;
    else bundles.set(key(link), [link]);
  }
  return (link) => {
    const gaps = (bundles.get(key(link))?.length ?? 1) - 1;
    return gaps ? [(2 * place[link]) / gaps - 1, gaps] : [0, 1];
  };
}

/** Largest number of rail letters that fit next to a row. */
const MOST_LETTERS = 2;
/** A level's name of at least this number of letters leaves no space for the word "level". */
const LONG = 3;

/** Name each row by its level, and by its rails' letters if there are several rails. */
function nameRows(model: Model, y: Float64Array): { y: number; name: string }[] {
  const { rails } = model.header;
  const letters = new Map<number, Map<number, Set<string>>>();
  for (let node = 0; node < model.nodes; node++) {
    const [rail, level] = [model.nodeRail[node], model.nodeLevel[node]];
    if (!rails[rail].has_levels) continue;
    const row = letters.get(y[node]) ?? new Map<number, Set<string>>();
    letters.set(y[node], row.set(level, (row.get(level) ?? new Set()).add(level ? railLetter(model, rail) : "")));
  }
  const nameLevel = ([level, those]: [number, Set<string>]): string => {
    if (!level) return "hosts";
    return those.size > MOST_LETTERS ? String(level) : [...those].map((letter) => `${level}${letter}`).join(" ");
  };
  const nameRow = (names: string): string => (/^\d/.test(names) && names.length < LONG ? `level ${names}` : names);
  const all = [...letters].map(([where, row]) => ({ y: where, name: nameRow([...row].map(nameLevel).join(" ")) }));
  return all.sort((one, other) => one.y - other.y);
}
