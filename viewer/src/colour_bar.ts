// SPDX-License-Identifier: Apache-2.0
// The colours' legend; a range of loads is chosen on it.

import { byId } from "./dom";
import type { Page } from "./page";
import type { Scale } from "./pictures/colours";
import type { Look } from "./pictures/look";
import { RangeBar } from "./range_bar";
import { formatBytes } from "./show";

export class ColourBar {
  private look: Look | null = null;
  private readonly bar: RangeBar;
  private readonly draw: () => void;

  constructor(page: Page) {
    this.bar = new RangeBar({
      label: "Load of link ends",
      describe: (part) => (this.look ? formatBytes(this.look.scale.amount(part)) : ""),
      change: (range) => page.choose({ load: range && this.look ? boundsOf(this.look.scale, range) : undefined }),
    });
    byId("colours").append(this.bar.element);
    this.draw = this.bar.onPaint((context, width, height) => {
      this.look?.theme.ramp.forEach((colour, step, { length }) => {
        context.fillStyle = colour;
        context.fillRect((step * width) / length, 0, width / length + 1, height);
      });
    });
  }

  show(look: Look): void {
    this.look = look;
    const { scale, state } = look;
    const used = scale.most > 0;
    byId("least").textContent = scale.logarithmic ? formatBytes(scale.least) : "0 B";
    byId("most").textContent = formatBytes(scale.most);
    const [low, high] = state.load ?? [];
    this.bar.set(
      used && low !== undefined && high !== undefined ? [low > 0 ? scale.part(low) : 0, scale.part(high)] : null,
    );
    this.draw();
  }
}

/** Bytes of a range; what reaches an edge of the bar is meant to hold all beyond. */
function boundsOf(scale: Scale, [low, high]: [number, number]): number[] {
  return [low <= 0 ? 0 : Math.floor(scale.amount(low)), Math.ceil(scale.amount(high))];
}
