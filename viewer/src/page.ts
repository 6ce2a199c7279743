// SPDX-License-Identifier: Apache-2.0
// Interfaces between the page and its parts.

import type { Encoding } from "./pictures/encoding";
import type { ComparedRun, Run } from "./run";
import type { State } from "./state";

/** The page. Its members that are inherited from `Run` describe the run that lists show. */
export interface Page extends Run {
  readonly state: State;
  /** All runs of the file. */
  readonly runs: readonly Run[];
  /** The run that is compared with the page's run; null without a comparison. */
  readonly compared: ComparedRun | null;
  /**
   * Change the state and update everything that shows it. Members that `part` lacks keep their values; a member given
   * as `undefined` is cleared. A repeated change, such as by a held key, replaces the last entry of the history.
   */
  choose(part: State, isRepeated?: boolean): void;
}

/** A list or matrix in a tab. New panels are listed in `panels/tabs.ts`. */
export interface Panel {
  /** The panel's name in the page's URL. The element has the id `panel-` + name. */
  readonly name: string;
  readonly title: string;
  readonly element: HTMLElement;
  /** Show an encoding. Called when the panel becomes visible, and after each change while it is visible. */
  show(encoding: Encoding): void;
}
