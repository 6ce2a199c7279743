// SPDX-License-Identifier: Apache-2.0
// The visual encoding of a state: drawn link directions and colours.

import type { Amounts } from "../data/amounts";
import { formatValue, type LinkValue } from "../data/link_values";
import { BYTES, type Measure, TIMES, timesPerByte } from "../data/measure";
import type { Model } from "../data/model";
import type { Ranking } from "../data/ranking";
import type { Run } from "../run";
import type { State } from "../state";
import { ChangeScale, type ColourScale, LoadScale } from "./colour_scale";
import { type AlikeLinks, eachAlone, groupAlike, orderByAmount, orderByTime, RANKED, rankLinks } from "./link_ranking";
import { STEPS, type Theme } from "./palette";

/** Special values in `Encoding.steps`: `HIDDEN` is not drawn; `IDLE` is drawn as a link direction without load. */
export const HIDDEN = 255;
export const IDLE = 0;

export interface Encoding {
  state: State;
  theme: Theme;
  run: Run;
  /** [link direction], the selection's bytes; if `isChange`, the change in units of `measure`. */
  amounts: Amounts;
  /** Measure and scale of the colours, and the selected range of the scale. */
  measure: Measure;
  isChange: boolean;
  /** [link direction], `HIDDEN`, `IDLE` or 1 + the index of the colour. */
  steps: Uint8Array;
  ramp: string[];
  scale: ColourScale;
  /** [link direction], emphasis from 0 to `STEPS` - 1: by time at line rate / longest time, or by `value`. */
  emphasis: Uint8Array;
  /** The property by which links are coloured; null if they are coloured by `amounts`. */
  value: LinkValue | null;
  /** Coloured link directions, by descending time at line rate (loads) or amount; at ties, hosts' links come first. */
  ranking: Ranking;
  /** The first groups of link directions with about equal load. Lists name the groups, and pictures number them. */
  groups: AlikeLinks[];
  /** Link directions on the selected pair's routes that carry no traffic, such as on another rail. */
  unusedRoutes: number[];
}

/** Encode the loads of a run. The scale also covers the loads `others`, which have the same measure. */
export function encodeLoads(
  run: Run,
  state: State,
  theme: Theme,
  amounts: Amounts,
  measure: Measure = BYTES,
  others: Amounts[] = [],
): Encoding {
  const { model } = run;
  const steps = hideFiltered(model, state);
  const measured = measure.convert(amounts, model);
  const scale = new LoadScale(...rangeOfAmounts([measured, ...others], steps), state.log ?? false);
  const [low, high] = state.load ?? [0, Number.POSITIVE_INFINITY];
  for (let end = 0; end < steps.length; end++) {
    const amount = measured.approximate(end);
    if (steps[end] === HIDDEN) continue;
    if (amounts.approximate(end) && amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const order = orderByTime(model, isColoured(steps));
  const ranking = rankLinks(amounts, order);
  const unusedRoutes = findUnusedRoutes(run, state, amounts);
  const { ramp } = theme;
  return {
    state,
    theme,
    run,
    amounts,
    measure,
    isChange: false,
    value: null,
    steps,
    ramp,
    scale,
    emphasis: emphasiseTimes(model, measure, measured, others, steps),
    ranking,
    groups: groupAlike(model, amounts, order),
    unusedRoutes,
  };
}

/** Return the property that colours links; null for loads. In a file without traffic, the default is property 0. */
export function findValue(model: Model, { value }: State): LinkValue | null {
  return model.linkValues[value ?? (model.header.about === undefined ? -1 : 0)] ?? null;
}

/** Encode a property of links. `amounts` are the loads of the run, which lists also show. */
export function encodeValue(run: Run, state: State, theme: Theme, amounts: Amounts, value: LinkValue): Encoding {
  const { model } = run;
  const steps = hideFiltered(model, state);
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
  const emphasis = Uint8Array.from(value.value, (amount) => (amount > 0 ? scale.step(amount) : 0));
  const ranking = rankValues(value, steps);
  const unusedRoutes = findUnusedRoutes(run, state, amounts);
  const { ramp } = theme;
  return {
    state,
    theme,
    run,
    amounts,
    measure: BYTES,
    isChange: false,
    value,
    steps,
    ramp,
    scale,
    emphasis,
    ranking,
    groups: eachAlone(ranking),
    unusedRoutes,
  };
}

/** Sort link directions by a property, descending. A link with equal values in both directions is listed once. */
function rankValues({ value }: LinkValue, steps: Uint8Array): Ranking {
  const isShown = isColoured(steps);
  const all = Array.from(steps.keys());
  const ranked = all.filter((end) => isShown(end) && !(end & 1 && value[end] === value[end ^ 1] && isShown(end ^ 1)));
  ranked.sort((one, other) => value[other] - value[one] || one - other);
  const [most, least] = [value[ranked[0]] ?? 0, value[ranked[ranked.length - 1]] ?? 0];
  return { first: ranked.slice(0, RANKED), used: ranked.length, least, most };
}

/** Encode the change between two runs. A link direction with an unknown load is drawn as if it had no load. */
export function encodeChanges(
  run: Run,
  state: State,
  theme: Theme,
  change: Amounts,
  measure: Measure,
  isKnown: (end: number) => boolean,
): Encoding {
  const { model } = run;
  const steps = hideFiltered(model, state);
  const sizes = change.magnitudes();
  const scale = new ChangeScale(...rangeOfAmounts([sizes], steps), state.log ?? false);
  const [low, high] = state.change ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let end = 0; end < steps.length; end++) {
    const amount = change.approximate(end);
    if (steps[end] === HIDDEN) continue;
    if (isKnown(end) && amount >= low && amount <= high) steps[end] = 1 + scale.step(amount);
    else if (state.used) steps[end] = HIDDEN;
  }
  const ranking = rankLinks(sizes, orderByAmount(model, isColoured(steps)));
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
    emphasis: emphasiseTimes(model, measure, sizes, [], steps),
    ranking,
    groups: eachAlone(ranking),
    unusedRoutes: [],
  };
}

/** Format an amount of an encoding. */
export function formatAmount({ isChange, value, measure }: Encoding, amount: number): string {
  if (value) return formatValue(value, amount);
  return isChange ? measure.formatChange(amount) : measure.format(amount);
}

/** Return the upper of the two levels that a link joins. */
export function upperLevel(model: Model, end: number): number {
  return Math.max(model.nodeLevel[model.endNode[end]], model.nodeLevel[model.endNode[end ^ 1]]);
}

/** Return steps that are `HIDDEN` for link directions that the filters by rail and level leave out. */
function hideFiltered(model: Model, { rail, level }: State): Uint8Array {
  const steps = new Uint8Array(2 * model.links);
  for (let end = 0; end < steps.length; end++) {
    const isIncluded =
      (rail === undefined || model.nodeRail[model.endNode[end]] === rail) &&
      (level === undefined || upperLevel(model, end) === level);
    if (!isIncluded) steps[end] = HIDDEN;
  }
  return steps;
}

/** Return the smallest and the largest amount above 0; zeros if there is none. */
function rangeOfAmounts(all: Amounts[], steps: Uint8Array): [number, number] {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const amounts of all)
    for (let end = 0; end < steps.length; end++) {
      const amount = amounts.approximate(end);
      if (!amount || steps[end] === HIDDEN) continue;
      least = Math.min(least, amount);
      most = Math.max(most, amount);
    }
  return [most ? least : 0, most];
}

/** Return times at line rate, in units in which the longest time of `amounts` and `others` is `STEPS` - 1. */
function emphasiseTimes(
  model: Model,
  measure: Measure,
  amounts: Amounts,
  others: Amounts[],
  steps: Uint8Array,
): Uint8Array {
  const factors = measure === TIMES ? new Float64Array(model.links).fill(1) : timesPerByte(model);
  let longest = 0;
  for (const each of [amounts, ...others])
    for (let end = 0; end < steps.length; end++)
      if (steps[end] !== HIDDEN) longest = Math.max(longest, each.approximate(end) * factors[end >> 1]);
  const part = (STEPS - 1) / (longest || 1);
  return Uint8Array.from(steps, (step, end) =>
    step === HIDDEN ? 0 : Math.round(part * amounts.approximate(end) * factors[end >> 1]),
  );
}

function isColoured(steps: Uint8Array): (end: number) => boolean {
  return (end) => steps[end] !== HIDDEN && steps[end] !== IDLE;
}

function findUnusedRoutes({ table }: Run, state: State, amounts: Amounts): number[] {
  return (table.pairRoutes(state) ?? []).flat().filter((end) => !amounts.approximate(end));
}

/** Return true if ranks, hosts, a link direction or a node are selected, so that the direction of bytes matters. */
export function selectsEndpoints({ ranks, hosts, source, destination, from, to, end, node }: State): boolean {
  return [ranks, hosts, source, destination, from, to, end, node].some((each) => each !== undefined);
}

/**
 * Return the link direction whose colour a half link has. If changes are shown, or if `selectsEndpoints` returns
 * true, each half has its own colour. Otherwise both halves have the colour of the busier direction.
 */
export function colouringEnd({ steps, emphasis, isChange, state }: Encoding, end: number): number {
  const back = end ^ 1;
  if (isChange || selectsEndpoints(state) || steps[back] === HIDDEN || steps[back] === IDLE) return end;
  const isOwn = steps[end] !== HIDDEN && steps[end] !== IDLE;
  return isOwn && (emphasis[end] || steps[end]) >= (emphasis[back] || steps[back]) ? end : back;
}

export function isNodeShown({ run: { model }, state }: Encoding, node: number): boolean {
  return state.rail === undefined || model.nodeRail[node] === state.rail;
}

/** Return the selected nodes, and the nodes of selected hosts. */
export function selectedNodes({ run: { model }, state }: Encoding): Set<number> {
  const hosts = new Set([state.from, state.to, ...(state.hosts ?? [])]);
  const chosen = new Set<number>();
  for (let node = 0; node < model.nodes; node++)
    if (state.node === node || (model.nodeHost[node] >= 0 && hosts.has(model.nodeHost[node]))) chosen.add(node);
  return chosen;
}
