// SPDX-License-Identifier: Apache-2.0
// What is to be seen of a state: loads, which link ends are drawn, in which colours.

import { type Amounts, type Ranking, rank } from "../data/amounts";
import type { Model } from "../data/document";
import type { LoadTable } from "../data/loads";
import type { State } from "../state";
import { Scale, type Theme } from "./colours";

const SWITCH = 1;
const RANKED = 200;

/** Steps of link ends: not drawn, drawn without load, else 1 + the number of the colour. */
export const HIDDEN = 255;
export const IDLE = 0;

export interface Look {
  state: State;
  theme: Theme;
  /** Of each link end, by the selection. */
  amounts: Amounts;
  /** Of each link end: `HIDDEN`, `IDLE` or 1 + its colour. */
  steps: Uint8Array;
  scale: Scale;
  /** Link ends with a colour, the greatest first; those between switches first among equals. */
  ranking: Ranking;
  /** Link ends of ways that a chosen pair would take on rails where it sends nothing. */
  ways: number[];
}

export function makeLook(model: Model, table: LoadTable, state: State, theme: Theme, amounts: Amounts): Look {
  const ends = 2 * model.links;
  const steps = new Uint8Array(ends);
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (let end = 0; end < ends; end++) {
    if (!isAmong(model, state, end)) {
      steps[end] = HIDDEN;
      continue;
    }
    const amount = amounts.rough(end);
    if (!amount) continue;
    least = Math.min(least, amount);
    most = Math.max(most, amount);
  }
  const scale = new Scale(most ? least : 0, most, state.log ?? false);
  const [low, high] = state.load ?? [0, Number.POSITIVE_INFINITY];
  for (let end = 0; end < ends; end++) {
    const amount = amounts.rough(end);
    if (steps[end] === HIDDEN) continue;
    if (amount && amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const between = (end: number): number =>
    model.nodeKind[model.endNode[end]] === SWITCH && model.nodeKind[model.endNode[end ^ 1]] === SWITCH ? 1 : 0;
  const before = (one: number, other: number): number => between(other) - between(one) || one - other;
  const ranking = rank(amounts, RANKED, before, (end) => steps[end] !== HIDDEN && steps[end] !== IDLE);
  return { state, theme, amounts, steps, scale, ranking, ways: findWays(model, table, state, amounts) };
}

/** The upper of the levels that a link joins. */
export function levelOf(model: Model, end: number): number {
  return Math.max(model.nodeLevel[model.endNode[end]], model.nodeLevel[model.endNode[end ^ 1]]);
}

function isAmong(model: Model, { rail, level }: State, end: number): boolean {
  return (
    (rail === undefined || model.nodeRail[model.endNode[end]] === rail) &&
    (level === undefined || levelOf(model, end) === level)
  );
}

function findWays(model: Model, table: LoadTable, { source, destination }: State, amounts: Amounts): number[] {
  if (source === undefined || destination === undefined) return [];
  const ways = model.header.rails.map((_, rail) => table.wayOfRanks(source, destination, rail));
  return ways.flat().filter((end) => !amounts.rough(end));
}
