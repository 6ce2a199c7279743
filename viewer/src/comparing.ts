// SPDX-License-Identifier: Apache-2.0
// Which two runs are compared, and how: the choices above the picture, where a file holds several.

import { byId } from "./dom";
import type { Page } from "./page";
import type { Compare, State } from "./state";

const WAYS: readonly Compare[] = ["beside", "difference", "none"];

export class Comparing {
  private readonly way = byId<HTMLSelectElement>("compare");
  private readonly run = byId<HTMLSelectElement>("run");
  private readonly against = byId<HTMLSelectElement>("against");

  constructor(private readonly page: Page) {
    const { runs } = page;
    byId("comparing").hidden = runs.length < 2;
    for (const select of [this.run, this.against])
      select.replaceChildren(...runs.map(({ name }, at) => new Option(name, String(at))));
    this.way.addEventListener("change", () => this.choose(this.way.value as Compare));
    this.run.addEventListener("change", () => {
      const [run, against] = [Number(this.run.value), againstOf(page.state)];
      this.choosePair(run, run === against ? runOf(page.state) : against);
    });
    this.against.addEventListener("change", () => {
      const [run, against] = [runOf(page.state), Number(this.against.value)];
      this.choosePair(run === against ? againstOf(page.state) : run, against);
    });
    byId("swap").addEventListener("click", () => this.swap());
  }

  show(state: State): void {
    this.way.value = state.compare ?? "beside";
    this.run.value = String(runOf(state));
    this.against.value = String(againstOf(state));
    byId("against-label").hidden = state.compare === "none";
    byId("swap").hidden = state.compare === "none";
  }

  /** To the next way to compare. */
  next(): void {
    if (this.page.runs.length < 2) return;
    this.choose(WAYS[(WAYS.indexOf(this.page.state.compare ?? "beside") + 1) % WAYS.length]);
  }

  swap(): void {
    if (this.page.runs.length > 1) this.choosePair(againstOf(this.page.state), runOf(this.page.state));
  }

  private choose(way: Compare): void {
    this.page.choose({ compare: way === "beside" ? undefined : way });
  }

  /** A run is never held against itself. */
  private choosePair(run: number, against: number): void {
    this.page.choose({ run: run || undefined, against: against === againstOf({ run }) ? undefined : against });
  }
}

export function runOf(state: State): number {
  return state.run ?? 0;
}

/** The run that is compared with: the second, or the first where that is the second itself. */
export function againstOf(state: State): number {
  const run = runOf(state);
  if (state.against !== undefined && state.against !== run) return state.against;
  return run ? 0 : 1;
}
