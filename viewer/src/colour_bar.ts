// SPDX-License-Identifier: Apache-2.0
// The colours' legend; a range of loads is chosen on it.

import { byId } from "./dom";
import type { Page } from "./page";
import { type Look, sayAmount } from "./pictures/look";
import { RangeBar } from "./range_bar";
import { printable } from "./show";

export class ColourBar {
  private look: Look | null = null;
  private readonly bar: RangeBar;
  private readonly draw: () => void;

  constructor(page: Page) {
    this.bar = new RangeBar({
      label: "Load of link ends",
      describe: (part) => (this.look ? sayAmount(this.look, this.look.scale.amount(part)) : ""),
      change: (range) => {
        const { look } = this;
        if (look) page.choose({ [look.isChange ? "change" : "load"]: range ? boundsOf(look, range) : undefined });
      },
    });
    byId("colours").append(this.bar.element);
    this.draw = this.bar.onPaint((context, width, height) => {
      this.look?.ramp.forEach((colour, step, { length }) => {
        context.fillStyle = colour;
        context.fillRect((step * width) / length, 0, width / length + 1, height);
      });
    });
  }

  show(look: Look): void {
    this.look = look;
    const { scale, state, isChange } = look;
    const [least, most] = scale.ends;
    byId("least").textContent = sayAmount(look, least);
    byId("most").textContent = sayAmount(look, most);
    byId("meaning").textContent = `${meaningOf(look)}; drag for a range`;
    const [low, high] = (isChange ? state.change : state.load) ?? [];
    const chosen = scale.most > 0 && low !== undefined && high !== undefined;
    this.bar.set(chosen ? [isChange || low > 0 ? scale.part(low) : 0, scale.part(high)] : null);
    this.draw();
  }
}

function meaningOf({ isChange, value, measure }: Look): string {
  if (value) return `${printable(value.name)} of the link`;
  if (isChange) return "less | more that the node at this end sends";
  return `${measure.isShare ? "share of its run" : "bytes"} that the node at this end sends`;
}

/** Bytes of a range; what reaches the lower edge of a bar of loads is meant to hold all beyond. */
function boundsOf({ scale, isChange, value }: Look, [low, high]: [number, number]): number[] {
  if (value) return [low <= 0 ? 0 : scale.amount(low), high >= 1 ? scale.most * (1 + 1e-8) : scale.amount(high)];
  return [!isChange && low <= 0 ? 0 : Math.floor(scale.amount(low)), Math.ceil(scale.amount(high))];
}
