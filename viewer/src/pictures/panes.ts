// SPDX-License-Identifier: Apache-2.0
// One picture, or two runs side by side: zoom and pan are of both, and so is the link end that is pointed at.

import { byId } from "../dom";
import type { Drawing, Hit } from "./drawing";
import type { Look } from "./look";
import { Stage } from "./stage";

/** What a pane shows, and what is written above it; nothing where it stands alone. */
export interface Shown {
  look: Look;
  name: string;
}

export interface PaneEvents {
  /** The pointer is over something of a pane, or over nothing; in CSS pixels of its canvas. */
  hover(pane: number, hit: Hit, x: number, y: number): void;
  choose(hit: Hit): void;
  /** The view has changed and come to rest. */
  settle(): void;
}

export class Panes {
  readonly stages: Stage[];
  private readonly places = [byId("pane-0"), byId("pane-1")];
  private shown: Shown[] = [];

  constructor(events: PaneEvents) {
    this.stages = ["picture", "picture-beside"].map(
      (id, pane) =>
        new Stage(byId<HTMLCanvasElement>(id), {
          hover: (hit, x, y) => events.hover(pane, hit, x, y),
          choose: (hit) => events.choose(hit),
          settle: () => events.settle(),
          move: (view) => {
            for (const other of this.inSight) if (other !== this.stages[pane]) other.follow(view);
          },
        }),
    );
  }

  /** The first, which is always in sight. */
  get first(): Stage {
    return this.stages[0];
  }

  private get inSight(): Stage[] {
    return this.stages.slice(0, this.shown.length);
  }

  /** The looks that are shown, with their names. */
  get all(): readonly Shown[] {
    return this.shown;
  }

  show(drawing: Drawing, shown: Shown[]): void {
    this.shown = shown;
    this.places.forEach((place, pane) => {
      place.hidden = pane >= shown.length;
      const name = byId(`pane-name-${pane}`);
      name.textContent = shown[pane]?.name ?? "";
      name.title = name.textContent;
      name.hidden = !name.textContent;
    });
    shown.forEach(({ look }, pane) => {
      this.stages[pane].show(drawing, look);
    });
  }

  /** Has a link end stand out in all panes, or none. */
  mark(end: number | null): void {
    for (const stage of this.inSight) stage.mark(end);
  }

  /** Where a pane's picture begins, within all of them. */
  offset(pane: number): [number, number] {
    const [own, all] = [this.stages[pane].canvas, byId("stage")].map((each) => each.getBoundingClientRect());
    return [own.left - all.left, own.top - all.top];
  }
}
