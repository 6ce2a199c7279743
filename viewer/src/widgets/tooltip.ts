// SPDX-License-Identifier: Apache-2.0
// The element that shows the tooltip of the node or link direction under the pointer.

import { byId, element } from "./dom";
import { type Box, placeTooltip, type Size } from "./tooltip_placement";

export class Tooltip {
  private readonly element = byId("tooltip");

  hide(): void {
    this.element.hidden = true;
  }

  /** Show lines of text near a point of a picture, away from `avoid`. `origin` is the picture's place on the page. */
  show(lines: string[], point: [number, number], avoid: Box, picture: Size, origin: [number, number]): void {
    const { element: tooltip } = this;
    tooltip.replaceChildren(...lines.map((line) => element("p", line)));
    tooltip.hidden = false;
    const [left, top] = placeTooltip(
      point,
      avoid,
      { width: tooltip.offsetWidth, height: tooltip.offsetHeight },
      picture,
    );
    tooltip.style.left = `${origin[0] + left}px`;
    tooltip.style.top = `${origin[1] + top}px`;
  }
}
