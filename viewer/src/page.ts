// SPDX-License-Identifier: Apache-2.0
// What parts of the page know of the whole.

import type { Model } from "./data/document";
import type { LoadTable } from "./data/loads";
import type { Names } from "./names";
import type { Look } from "./pictures/look";
import type { State } from "./state";

export interface Page {
  readonly model: Model;
  readonly table: LoadTable;
  readonly names: Names;
  readonly state: State;
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
