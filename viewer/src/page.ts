// SPDX-License-Identifier: Apache-2.0
// Interfaces between the page and its parts.

import type { Encoding } from "./pictures/encoding";
import type { ComparedRun, Run } from "./run";
import type { State } from "./state";

/** The page. As a run, it is the one that lists show. */
export interface Page extends Run {
  readonly state: State;
  /** All runs of the file. */
  readonly runs: readonly Run[];
  /** The run that is compared with the page's run; null without a comparison. */
  readonly compared: ComparedRun | null;
  /**
   * Change parts of the state and update everything that shows it. A part that is undefined is cleared. A repeated
   * change, such as by a key that is held down, replaces the last entry of the browser's history.
   */
  choose(part: State, isRepeated?: boolean): void;
}

/** A list or matrix in a tab of its own. To add one: `panels/tabs.ts`. */
export interface Panel {
  /** Its name in the address; the id of its element is `panel-` and this. */
  readonly name: string;
  readonly title: string;
  readonly element: HTMLElement;
  /** Called when the panel becomes visible and, while it is, after each change. */
  show(encoding: Encoding): void;
}
