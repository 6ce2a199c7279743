// SPDX-License-Identifier: Apache-2.0
// The interface for tests and scripts, `window.ibprof`: numbers that the page shows.

import type { Amounts } from "./data/amounts";
import type { Hit } from "./pictures/drawing";
import { HIDDEN, IDLE } from "./pictures/encoding";
import type { State } from "./state";
import type { View } from "./view";

export interface ScriptApi {
  /** Loads of the page's run: bytes, as decimal text, of [link][end]. Links are in the order of links.csv. */
  loads(): string[][];
  /** Loads of the run with which the page's run is compared. */
  loadsAfter(): string[][];
  /** The loads or changes of the first picture. */
  drawn(): string[][];
  /** Link directions in the order of the table of links. */
  ranked(): number[];
  /** Link directions that are drawn in a colour. */
  lit(): number[];
  /** Link directions without traffic on the selected pair's routes. */
  unusedRoutes(): number[];
  /** The rotation of a three-dimensional picture. */
  turned(): number[] | undefined;
  locateEnd(end: number, pane?: number): [number, number];
  extentOfEnd(end: number): [number, number, number, number];
  locateNode(node: number): [number, number] | undefined;
  find(x: number, y: number): Hit;
  redraw(): void;
  pan(x: number, y: number): void;
  turn(x: number, y: number): void;
  choose(part: State): void;
}

export function makeScriptApi(view: View): ScriptApi {
  const { panes } = view;
  const list = (amounts: Amounts): string[][] =>
    Array.from({ length: view.model.links }, (_, link) =>
      [2 * link, 2 * link + 1].map((end) => amounts.exact(end).toString()),
    );
  return {
    loads: () => list(view.ownLoads),
    loadsAfter: () => (view.compared ? list(view.compared.after) : []),
    drawn: () => list(view.shownEncoding.amounts),
    ranked: () => view.shownEncoding.ranking.first,
    lit: () => {
      const { steps } = view.shownEncoding;
      return Array.from(steps.keys()).filter((end) => steps[end] !== IDLE && steps[end] !== HIDDEN);
    },
    unusedRoutes: () => view.shownEncoding.unusedRoutes,
    turned: () => view.drawing.rotation,
    locateEnd: (end, pane = 0) => panes.viewports[pane].locateEnd(end),
    extentOfEnd: (end) => panes.first.extentOfEnd(end),
    locateNode: (node) => panes.first.locateNode(node),
    find: (x, y) => panes.first.find(x, y),
    redraw: () => panes.first.redraw(),
    pan: (x, y) => panes.first.pan(x, y),
    turn: (x, y) => panes.first.steer(x, y, false),
    choose: (part) => view.choose(part),
  };
}
