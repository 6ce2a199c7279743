// SPDX-License-Identifier: Apache-2.0
// The legend of the colours; a drag on it selects a range of loads.

import { printable } from "../format";
import type { Page } from "../page";
import { type Encoding, formatAmount, selectsEndpoints } from "../pictures/encoding";
import { byId } from "./dom";
import { RangeSlider } from "./range_slider";

export class ColourBar {
  private encoding: Encoding | null = null;
  private readonly bar: RangeSlider;
  private readonly draw: () => void;

  constructor(page: Page) {
    this.bar = new RangeSlider({
      label: "Load of link directions",
      describe: (part) => (this.encoding ? formatAmount(this.encoding, this.encoding.scale.amount(part)) : ""),
      change: (range, isRepeated) => {
        const { encoding } = this;
        if (!encoding) return;
        const bounds = range ? boundsOf(encoding, range) : undefined;
        page.choose({ [encoding.isChange ? "change" : "load"]: bounds }, isRepeated);
      },
    });
    byId("colours").append(this.bar.element);
    this.draw = this.bar.onPaint((context, width, height) => {
      this.encoding?.ramp.forEach((colour, step, { length }) => {
        context.fillStyle = colour;
        context.fillRect((step * width) / length, 0, width / length + 1, height);
      });
    });
  }

  show(encoding: Encoding, picture: string): void {
    this.encoding = encoding;
    const { scale, state, isChange } = encoding;
    const [least, most] = scale.ends;
    byId("least").textContent = formatAmount(encoding, least);
    byId("most").textContent = formatAmount(encoding, most);
    byId("meaning").textContent = `${meaningOf(encoding, picture)}; drag to select a range`;
    const [low, high] = (isChange ? state.change : state.load) ?? [];
    const chosen = scale.most > 0 && low !== undefined && high !== undefined;
    this.bar.set(chosen ? [isChange || low > 0 ? scale.part(low) : 0, scale.part(high)] : null);
    this.draw();
  }
}

function meaningOf({ isChange, state, value, measure }: Encoding, picture: string): string {
  if (value) return `${printable(value.name)} of the link`;
  const isHalved = isChange || selectsEndpoints(state);
  const halves = isHalved ? "that the nearer node sends" : "in the busier direction of a link";
  const what = `${measure.title} ${picture === "cells" ? "in the direction of a cell" : halves}`;
  return isChange ? `less | more ${what}` : what;
}

/** Return the amounts at the ends of a range. A range that reaches an end of the scale of loads has no limit there. */
function boundsOf({ scale, isChange, value }: Encoding, [low, high]: [number, number]): number[] {
  if (value) return [low <= 0 ? 0 : scale.amount(low), high >= 1 ? scale.most * (1 + 1e-8) : scale.amount(high)];
  return [!isChange && low <= 0 ? 0 : Math.floor(scale.amount(low)), Math.ceil(scale.amount(high))];
}
