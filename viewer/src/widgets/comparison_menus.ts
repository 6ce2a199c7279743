// SPDX-License-Identifier: Apache-2.0
// The menu of measures. A file with several runs also has menus of two runs and of their comparison.

import { type Measure, TIMES } from "../data/measure";
import type { Page } from "../page";
import { knowsSpeeds, measureForColours, otherRunIndex, runIndex } from "../run_pair";
import type { Compare, State } from "../state";
import { byId } from "./dom";

const MODES: readonly Compare[] = ["beside", "difference", "none"];

export class ComparisonMenus {
  private readonly mode = byId<HTMLSelectElement>("compare");
  private readonly run = byId<HTMLSelectElement>("run");
  private readonly against = byId<HTMLSelectElement>("against");
  private readonly by = byId<HTMLSelectElement>("by");

  constructor(private readonly page: Page) {
    const { runs } = page;
    byId("comparing").hidden = runs.length < 2;
    const speeds = knowsSpeeds(page.model);
    this.by.replaceChildren(
      ...(speeds ? [new Option("time at line rate", "time")] : []),
      new Option("bytes", "bytes"),
      ...(runs.length > 1 ? [new Option("share of run", "share")] : []),
    );
    byId("by-label").hidden = this.by.options.length < 2 || page.model.header.about !== undefined;
    for (const select of [this.run, this.against])
      select.replaceChildren(...runs.map(({ name }, at) => new Option(name, String(at))));
    this.mode.addEventListener("change", () => this.choose(this.mode.value as Compare));
    this.run.addEventListener("change", () => {
      const [run, against] = [Number(this.run.value), otherRunIndex(page.state)];
      this.choosePair(run, run === against ? runIndex(page.state) : against);
    });
    this.against.addEventListener("change", () => {
      const [run, against] = [runIndex(page.state), Number(this.against.value)];
      this.choosePair(run === against ? otherRunIndex(page.state) : run, against);
    });
    this.by.addEventListener("change", () => this.change({ by: this.by.value as State["by"] }));
    byId("swap").addEventListener("click", () => this.swap());
  }

  show(state: State): void {
    this.mode.value = state.compare ?? "beside";
    this.run.value = String(runIndex(state));
    this.against.value = String(otherRunIndex(state));
    const measure = this.currentMeasure(state);
    this.by.value = measure === TIMES ? "time" : measure.isShare ? "share" : "bytes";
    for (const id of ["against-label", "swap"]) byId(id).hidden = state.compare === "none";
  }

  /** Switch to the next mode of comparison. */
  next(): void {
    if (this.page.runs.length < 2) return;
    this.choose(MODES[(MODES.indexOf(this.page.state.compare ?? "beside") + 1) % MODES.length]);
  }

  /** Exchange the two runs. */
  swap(): void {
    if (this.page.runs.length > 1) this.choosePair(otherRunIndex(this.page.state), runIndex(this.page.state));
  }

  private choose(mode: Compare): void {
    this.change({ compare: mode === "beside" ? undefined : mode });
  }

  /** Select two different runs. */
  private choosePair(run: number, against: number): void {
    this.change({ run: run || undefined, against: against === otherRunIndex({ run }) ? undefined : against });
  }

  /** Change the state; clear ranges of loads if the measure changes. */
  private change(part: State): void {
    const { state } = this.page;
    const same = this.currentMeasure(state) === this.currentMeasure({ ...state, ...part });
    this.page.choose(same ? part : { ...part, load: undefined, change: undefined });
  }

  private currentMeasure(state: State): Measure {
    const { runs } = this.page;
    const other = state.compare === "none" ? undefined : runs[otherRunIndex(state)]?.model;
    return measureForColours(state, runs[runIndex(state)].model, other);
  }
}
