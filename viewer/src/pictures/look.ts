// SPDX-License-Identifier: Apache-2.0
// What is to be seen of a state: loads or differences, which link ends are drawn, in which colours.

import { type Amounts, type Ranking, rank } from "../data/amounts";
import { type Model, SWITCH } from "../data/document";
import { formatValue, type LinkValue } from "../data/link_values";
import { BYTES, type Measure } from "../data/measure";
import type { Run } from "../page";
import type { State } from "../state";
import { ChangeScale, LoadScale, type Scale, type Theme } from "./colours";

const RANKED = 200;

/** Steps of link ends: not drawn, drawn without load, else 1 + the number of the colour. */
export const HIDDEN = 255;
export const IDLE = 0;

export interface Look {
  state: State;
  theme: Theme;
  run: Run;
  /** Of each link end, by the selection: bytes, or where `isChange` what they are more than before, by `measure`. */
  amounts: Amounts;
  /** What colours, their scale and its range are by. */
  measure: Measure;
  isChange: boolean;
  /** Of each link end: `HIDDEN`, `IDLE` or 1 + its colour. */
  steps: Uint8Array;
  ramp: string[];
  scale: Scale;
  /** What links are coloured by; null: by `amounts`. */
  value: LinkValue | null;
  /** Link ends with a colour, the greatest first; those between switches first among equals. */
  ranking: Ranking;
  /** Link ends of ways that a chosen pair would take on rails where it sends nothing. */
  ways: number[];
}

/** The loads of a run; `others` are on the same scale, by the same measure. */
export function makeLook(
  run: Run,
  state: State,
  theme: Theme,
  amounts: Amounts,
  measure: Measure = BYTES,
  others: Amounts[] = [],
): Look {
  const { model } = run;
  const steps = hideOthers(model, state);
  const measured = measure.of(amounts, model);
  const scale = new LoadScale(...rangeOf([measured, ...others], steps), state.log ?? false);
  const [low, high] = state.load ?? [0, Number.POSITIVE_INFINITY];
  for (let end = 0; end < steps.length; end++) {
    const amount = measured.rough(end);
    if (steps[end] === HIDDEN) continue;
    if (amounts.rough(end) && amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const ranking = rankEnds(model, amounts, steps);
  const ways = findWays(run, state, amounts);
  const { ramp } = theme;
  return { state, theme, run, amounts, measure, isChange: false, value: null, steps, ramp, scale, ranking, ways };
}

/** What links are coloured by in place of loads, if anything: a network without traffic has nothing else. */
export function findValue(model: Model, { value }: State): LinkValue | null {
  return model.linkValues[value ?? (model.header.about === undefined ? -1 : 0)] ?? null;
}

/** A value of each link; `amounts` are what the run puts on them nonetheless. */
export function makeValueLook(run: Run, state: State, theme: Theme, amounts: Amounts, value: LinkValue): Look {
  const { model } = run;
  const steps = hideOthers(model, state);
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (let end = 0; end < steps.length; end++) {
    const amount = value.value[end];
    if (steps[end] === HIDDEN || !(amount > 0)) continue;
    least = Math.min(least, amount);
    most = Math.max(most, amount);
  }
  const scale = new LoadScale(most ? least : 0, most, state.log ?? false);
  const [low, high] = state.load ?? [0, Number.POSITIVE_INFINITY];
  for (let end = 0; end < steps.length; end++) {
    const amount = value.value[end];
    if (steps[end] === HIDDEN) continue;
    if (amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const ranking = rankValues(value, steps);
  const ways = findWays(run, state, amounts);
  const { ramp } = theme;
  return { state, theme, run, amounts, measure: BYTES, isChange: false, value, steps, ramp, scale, ranking, ways };
}

/** Link ends by a value, the greatest first; of two ends that have the same the first one stands for the link. */
function rankValues({ value }: LinkValue, steps: Uint8Array): Ranking {
  const among = (end: number): boolean => steps[end] !== HIDDEN && steps[end] !== IDLE;
  const all = Array.from(steps.keys());
  const ranked = all.filter((end) => among(end) && !(end & 1 && value[end] === value[end ^ 1] && among(end ^ 1)));
  ranked.sort((one, other) => value[other] - value[one] || one - other);
  const [most, least] = [value[ranked[0]] ?? 0, value[ranked[ranked.length - 1]] ?? 0];
  return { first: ranked.slice(0, RANKED), used: ranked.length, least, most };
}

/** What a run has more than another, `change` by a measure; link ends without either are as if unused. */
export function makeChangeLook(
  run: Run,
  state: State,
  theme: Theme,
  change: Amounts,
  measure: Measure,
  isKnown: (end: number) => boolean,
): Look {
  const { model } = run;
  const steps = hideOthers(model, state);
  const sizes = change.magnitudes();
  const scale = new ChangeScale(...rangeOf([sizes], steps), state.log ?? false);
  const [low, high] = state.change ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let end = 0; end < steps.length; end++) {
    const amount = change.rough(end);
    if (steps[end] === HIDDEN) continue;
    if (isKnown(end) && amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const ranking = rankEnds(model, sizes, steps);
  return {
    state,
    theme,
    run,
    amounts: change,
    measure,
    isChange: true,
    value: null,
    steps,
    ramp: theme.change,
    scale,
    ranking,
    ways: [],
  };
}

/** An amount of a look in words. */
export function sayAmount({ isChange, value, measure }: Look, amount: number): string {
  if (value) return formatValue(value, amount);
  return isChange ? measure.sayChange(amount) : measure.say(amount);
}

/** The upper of the levels that a link joins. */
export function levelOf(model: Model, end: number): number {
  return Math.max(model.nodeLevel[model.endNode[end]], model.nodeLevel[model.endNode[end ^ 1]]);
}

/** Steps with what the filters of rail and level leave out. */
function hideOthers(model: Model, { rail, level }: State): Uint8Array {
  const steps = new Uint8Array(2 * model.links);
  for (let end = 0; end < steps.length; end++) {
    const among =
      (rail === undefined || model.nodeRail[model.endNode[end]] === rail) &&
      (level === undefined || levelOf(model, end) === level);
    if (!among) steps[end] = HIDDEN;
  }
  return steps;
}

/** The least and the greatest of amounts above 0; zeros where there are none. */
function rangeOf(all: Amounts[], steps: Uint8Array): [number, number] {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const amounts of all)
    for (let end = 0; end < steps.length; end++) {
      const amount = amounts.rough(end);
      if (!amount || steps[end] === HIDDEN) continue;
      least = Math.min(least, amount);
      most = Math.max(most, amount);
    }
  return [most ? least : 0, most];
}

function rankEnds(model: Model, sizes: Amounts, steps: Uint8Array): Ranking {
  const between = (end: number): number =>
    model.nodeKind[model.endNode[end]] === SWITCH && model.nodeKind[model.endNode[end ^ 1]] === SWITCH ? 1 : 0;
  const before = (one: number, other: number): number => between(other) - between(one) || one - other;
  return rank(sizes, RANKED, before, (end) => steps[end] !== HIDDEN && steps[end] !== IDLE);
}

function findWays({ table }: Run, state: State, amounts: Amounts): number[] {
  return (table.ways(state) ?? []).flat().filter((end) => !amounts.rough(end));
}

/** Whether a choice is of some senders or receivers, so that it matters which way bytes go. */
export function isOfSome({ ranks, hosts, source, from, end, node }: State): boolean {
  return [ranks, hosts, source, from, end, node].some((each) => each !== undefined);
}

export function showsNode({ run: { model }, state }: Look, node: number): boolean {
  return state.rail === undefined || model.nodeRail[node] === state.rail;
}

/** The nodes that are chosen themselves, and those of hosts that are. */
export function chosenNodes({ run: { model }, state }: Look): Set<number> {
  const hosts = new Set([state.from, state.to, ...(state.hosts ?? [])]);
  const chosen = new Set<number>();
  for (let node = 0; node < model.nodes; node++)
    if (state.node === node || (model.nodeHost[node] >= 0 && hosts.has(model.nodeHost[node]))) chosen.add(node);
  return chosen;
}
