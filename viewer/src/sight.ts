// SPDX-License-Identifier: Apache-2.0
// What is to be seen of a state: of one run, of two side by side, of their difference.

import { againstOf, measureOf, runOf } from "./comparing";
import type { Amounts } from "./data/amounts";
import { Comparison } from "./data/comparison";
import type { Measure } from "./data/measure";
import type { Compared, Run } from "./page";
import type { Theme } from "./pictures/colours";
import { findValue, type Look, makeChangeLook, makeLook, makeValueLook } from "./pictures/look";
import type { Shown } from "./pictures/panes";
import { SELECTION, type State } from "./state";

export interface Sight {
  /** Of the run that lists are of. */
  listed: Look;
  /** Of each picture. */
  shown: Shown[];
  compared: Compared | null;
}

export class Sights {
  /** What runs put on link ends, of the selection that was last asked for. */
  private readonly amounts = new Map<Run, Amounts>();
  private readonly comparisons = new Map<string, Comparison>();

  constructor(private readonly runs: readonly Run[]) {}

  /** To be called when another selection is to be seen. */
  forget(): void {
    this.amounts.clear();
  }

  amountsOf(run: Run, state: State): Amounts {
    const made = this.amounts.get(run) ?? run.table.ofEnds(state);
    this.amounts.set(run, made);
    return made;
  }

  make(state: State, theme: Theme): Sight {
    const run = this.runs[runOf(state)];
    const other = this.runs[againstOf(state)];
    const before = this.amountsOf(run, state);
    const value = findValue(run.model, state);
    if (value) {
      const look = makeValueLook(run, state, theme, before, value);
      return { listed: look, shown: [{ look, name: "" }], compared: null };
    }
    if (!other || state.compare === "none") {
      const listed = makeLook(run, state, theme, before);
      return { listed, shown: [{ look: listed, name: "" }], compared: null };
    }
    const after = this.amountsOf(other, state);
    const measure = measureOf(state, run, other);
    const comparison = this.compare(run, other, measure);
    const compared = { run: other, comparison, before, after };
    const listed = makeLook(run, state, theme, before, measure, [comparison.ofAfter(after)]);
    if (state.compare === "difference") {
      const change = comparison.ofEnds(before, after);
      const isUsed = (end: number): boolean =>
        comparison.knows(end) && (before.rough(end) !== 0 || after.rough(end) !== 0);
      const look = makeChangeLook(run, state, theme, change, measure, isUsed);
      return { listed, shown: [{ look, name: `${nameOf(other, state)} less ${nameOf(run, state)}` }], compared };
    }
    const beside = makeLook(other, state, theme, after, measure, [comparison.ofBefore(before)]);
    return { listed, shown: [listed, beside].map((look) => ({ look, name: nameOf(look.run, state) })), compared };
  }

  private compare(one: Run, other: Run, measure: Measure): Comparison {
    const key = `${this.runs.indexOf(one)} ${this.runs.indexOf(other)} ${measure.isShare}`;
    const made = this.comparisons.get(key) ?? new Comparison(one.table, other.table, measure);
    this.comparisons.set(key, made);
    return made;
  }
}

/** The same of a state that differs in nothing that is drawn. */
export function keepSight(sight: Sight, state: State): Sight {
  const shown = sight.shown.map(({ look, name }) => ({ look: { ...look, state }, name }));
  return { ...sight, listed: sight.listed === sight.shown[0].look ? shown[0].look : { ...sight.listed, state }, shown };
}

/** Names a picture among others; choices that its run cannot follow are told. */
function nameOf(run: Run, state: State): string {
  if (!run.table.hasFlows && SELECTION.some((part) => state[part] !== undefined))
    return `${run.name} (all traffic: who sent it is not known)`;
  if (state.time && !run.table.timeline) return `${run.name} (at all times: when it was sent is not known)`;
  return run.name;
}
