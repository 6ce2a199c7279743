// SPDX-License-Identifier: Apache-2.0
// The scene of a state: one run, two side by side, or their difference.

import type { Amounts } from "./data/amounts";
import { Comparison } from "./data/comparison";
import type { Measure } from "./data/measure";
import { type Encoding, encodeChanges, encodeLoads, encodeValue, findValue } from "./pictures/encoding";
import type { Theme } from "./pictures/palette";
import type { PaneContent } from "./pictures/panes";
import type { ComparedRun, Run } from "./run";
import { measureFor, measureForColours, otherRunIndex, runIndex } from "./run_pair";
import { SELECTION, type State } from "./state";

export interface Scene {
  /** The encoding of the run that lists show. */
  listed: Encoding;
  panes: PaneContent[];
  compared: ComparedRun | null;
}

export class SceneBuilder {
  /** Run -> loads that the last selection puts on link directions. */
  private readonly amounts = new Map<Run, Amounts>();
  private readonly comparisons = new Map<string, Comparison>();

  constructor(private readonly runs: readonly Run[]) {}

  /** Discard the cached loads; must be called when the selection changes. */
  forget(): void {
    this.amounts.clear();
  }

  amountsOf(run: Run, state: State): Amounts {
    const made = this.amounts.get(run) ?? run.table.loadOfEnds(state);
    this.amounts.set(run, made);
    return made;
  }

  make(state: State, theme: Theme): Scene {
    const run = this.runs[runIndex(state)];
    const other = this.runs[otherRunIndex(state)];
    const before = this.amountsOf(run, state);
    const value = findValue(run.model, state);
    if (value) {
      const encoding = encodeValue(run, state, theme, before, value);
      return { listed: encoding, panes: [{ encoding, name: "" }], compared: null };
    }
    if (!other || state.compare === "none") {
      const listed = encodeLoads(run, state, theme, before, measureForColours(state, run.model));
      return { listed, panes: [{ encoding: listed, name: "" }], compared: null };
    }
    const after = this.amountsOf(other, state);
    const measure = measureFor(state, run.model, other.model);
    const comparison = this.compare(run, other, measure);
    const compared = { run: other, comparison, before, after };
    const colours = measureForColours(state, run.model, other.model);
    const coloured = [colours.convert(before, run.model), colours.convert(after, other.model)];
    const listed = encodeLoads(run, state, theme, before, colours, [coloured[1]]);
    if (state.compare === "difference") {
      const change = comparison.changeOfEnds(coloured[0], coloured[1]);
      const isUsed = (end: number): boolean =>
        comparison.isKnown(end) && (before.approximate(end) !== 0 || after.approximate(end) !== 0);
      const encoding = encodeChanges(run, state, theme, change, colours, isUsed);
      return { listed, panes: [{ encoding, name: `${nameOf(other, state)} − ${nameOf(run, state)}` }], compared };
    }
    const second = encodeLoads(other, state, theme, after, colours, [coloured[0]]);
    const panes = [listed, second].map((encoding) => ({ encoding, name: nameOf(encoding.run, state) }));
    return { listed, panes, compared };
  }

  private compare(one: Run, other: Run, measure: Measure): Comparison {
    const key = `${this.runs.indexOf(one)} ${this.runs.indexOf(other)} ${measure.isShare}`;
    const made = this.comparisons.get(key) ?? new Comparison(one.table, other.table, measure);
    this.comparisons.set(key, made);
    return made;
  }
}

/** Return the scene with another state; that state must have the same pictures. */
export function withState(scene: Scene, state: State): Scene {
  const panes = scene.panes.map(({ encoding, name }) => ({ encoding: { ...encoding, state }, name }));
  const isDrawn = scene.listed === scene.panes[0].encoding;
  return { ...scene, listed: isDrawn ? panes[0].encoding : { ...scene.listed, state }, panes };
}

/** Name the pane of a run. If the run cannot apply the selection, the pane's name says so. */
function nameOf(run: Run, state: State): string {
  if (!run.table.hasFlows && SELECTION.some((part) => state[part] !== undefined))
    return `${run.name} (all traffic: senders unknown)`;
  if (state.time && !run.table.timeline) return `${run.name} (whole run: no time line)`;
  return run.name;
}
