// SPDX-License-Identifier: Apache-2.0
// One picture, or two runs side by side with the same zoom, pan and highlighted link direction.

import { byId } from "../widgets/dom";
import type { Drawing, Hit } from "./drawing";
import type { Encoding } from "./encoding";
import { Viewport } from "./viewport";

/** The content of one pane; the name is empty if there is only one pane. */
export interface PaneContent {
  encoding: Encoding;
  name: string;
}

export interface PaneEvents {
  /** Called when the pointer is over a pane. x and y are CSS pixels of the canvas. `hit` may be empty. */
  hover(pane: number, hit: Hit, x: number, y: number): void;
  choose(hit: Hit): void;
  /** Called when a change of zoom or pan has ended. */
  settle(): void;
}

export class Panes {
  readonly viewports: Viewport[];
  private readonly places = [byId("pane-0"), byId("pane-1")];
  private shown: PaneContent[] = [];

  constructor(events: PaneEvents) {
    this.viewports = ["picture", "picture-beside"].map(
      (id, pane) =>
        new Viewport(byId<HTMLCanvasElement>(id), {
          hover: (hit, x, y) => events.hover(pane, hit, x, y),
          choose: (hit) => events.choose(hit),
          settle: () => events.settle(),
          move: (view) => {
            for (const other of this.visible) if (other !== this.viewports[pane]) other.follow(view);
          },
        }),
    );
  }

  /** The first pane, which is always visible. */
  get first(): Viewport {
    return this.viewports[0];
  }

  private get visible(): Viewport[] {
    return this.viewports.slice(0, this.shown.length);
  }

  /** The encodings that are shown, with their names. */
  get all(): readonly PaneContent[] {
    return this.shown;
  }

  show(drawing: Drawing, shown: PaneContent[]): void {
    this.shown = shown;
    this.places.forEach((place, pane) => {
      place.hidden = pane >= shown.length;
      const name = byId(`pane-name-${pane}`);
      name.textContent = shown[pane]?.name ?? "";
      name.title = name.textContent;
      name.hidden = !name.textContent;
    });
    shown.forEach(({ encoding }, pane) => {
      this.viewports[pane].show(drawing, encoding);
    });
  }

  /** Highlight a link direction in all panes; null ends the highlight. */
  highlight(end: number | null): void {
    for (const stage of this.visible) stage.highlight(end);
  }

  /** Return x and y of a pane's picture, relative to the area of all panes. */
  offset(pane: number): [number, number] {
    const [own, all] = [this.viewports[pane].canvas, byId("stage")].map((each) => each.getBoundingClientRect());
    return [own.left - all.left, own.top - all.top];
  }
}
