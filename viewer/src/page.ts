// SPDX-License-Identifier: Apache-2.0
// What parts of the page know of the whole.

import type { Amounts } from "./data/amounts";
import type { Comparison } from "./data/comparison";
import type { Model } from "./data/document";
import type { LoadTable } from "./data/loads";
import type { Names } from "./names";
import type { Look } from "./pictures/look";
import type { State } from "./state";

/** What was put on the fabric: a run, a placement of one, what was measured. */
export interface Run {
  /** Tells it from the others of the file; empty where it is alone. */
  readonly name: string;
  readonly model: Model;
  readonly table: LoadTable;
  readonly names: Names;
}

/** Another run beside that of the page. */
export interface Compared {
  readonly run: Run;
  readonly comparison: Comparison;
  /** What link ends carry of the selection, in the page's run and in this. */
  readonly before: Amounts;
  readonly after: Amounts;
}

export interface Page extends Run {
  readonly state: State;
  /** All that the file holds; the page itself is the one that lists are of. */
  readonly runs: readonly Run[];
  /** What the page's run is compared with; null where nothing is. */
  readonly compared: Compared | null;
  /** Changes parts of the state; undefined takes a choice back. All that shows it follows. */
  choose(part: State): void;
}

/** Something beside the picture, behind a tab of its own. To add one: `panels/all.ts`. */
export interface Panel {
  /** As the address names it; the element's id is `panel-` and this. */
  readonly name: string;
  readonly title: string;
  readonly element: HTMLElement;
  /** Called when it comes into sight, and while it is, after each change. */
  show(look: Look): void;
}
