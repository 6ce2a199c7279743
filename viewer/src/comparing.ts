// SPDX-License-Identifier: Apache-2.0
// Which two runs are compared, and how: the choices above the picture, where a file holds several.

import type { Model } from "./data/document";
import { BYTES, type Measure, SHARES } from "./data/measure";
import { byId } from "./dom";
import type { Page, Run } from "./page";
import type { Compare, State } from "./state";

const WAYS: readonly Compare[] = ["beside", "difference", "none"];

export class Comparing {
  private readonly way = byId<HTMLSelectElement>("compare");
  private readonly run = byId<HTMLSelectElement>("run");
  private readonly against = byId<HTMLSelectElement>("against");
  private readonly by = byId<HTMLSelectElement>("by");

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
    this.by.addEventListener("change", () => this.change({ by: this.by.value as State["by"] }));
    byId("swap").addEventListener("click", () => this.swap());
  }

  show(state: State): void {
    this.way.value = state.compare ?? "beside";
    this.run.value = String(runOf(state));
    this.against.value = String(againstOf(state));
    this.by.value = this.measureOf(state).isShare ? "share" : "bytes";
    for (const id of ["against-label", "by-label", "swap"]) byId(id).hidden = state.compare === "none";
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
    this.change({ compare: way === "beside" ? undefined : way });
  }

  /** A run is never held against itself. */
  private choosePair(run: number, against: number): void {
    this.change({ run: run || undefined, against: against === againstOf({ run }) ? undefined : against });
  }

  /** A range of loads is taken back where it was of another measure. */
  private change(part: State): void {
    const { state } = this.page;
    const same = this.measureOf(state) === this.measureOf({ ...state, ...part });
    this.page.choose(same ? part : { ...part, load: undefined, change: undefined });
  }

  private measureOf(state: State): Measure {
    const { runs } = this.page;
    return state.compare === "none" || runs.length < 2
      ? BYTES
      : measureOf(state, runs[runOf(state)], runs[againstOf(state)]);
  }
}

/** How two runs are compared: as was chosen; else by share where they have different numbers of ranks. */
export function measureOf({ by }: State, one: Run, other: Run): Measure {
  const [ranks, others] = [countRanks(one.model), countRanks(other.model)];
  const differ = ranks > 0 && others > 0 && ranks !== others;
  return (by ?? (differ ? "share" : "bytes")) === "share" ? SHARES : BYTES;
}

function countRanks({ rankJob }: Model): number {
  let count = 0;
  for (const job of rankJob) if (job >= 0) count++;
  return count;
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
