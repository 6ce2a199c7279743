// SPDX-License-Identifier: Apache-2.0
// Arrowheads on links.

import type { DrawingContext } from "./drawing_context";

/** Paint an arrowhead at a point; `along` leads from the point to the tip, `broad` is width / length. */
export function paintArrowhead(
  context: DrawingContext,
  [x, y]: [number, number],
  [alongX, alongY]: [number, number],
  broad: number,
): void {
  context.beginPath();
  context.moveTo(x + alongX, y + alongY);
  context.lineTo(x - alongX - broad * alongY, y - alongY + broad * alongX);
  context.lineTo(x - alongX + broad * alongY, y - alongY - broad * alongX);
  context.closePath();
  context.stroke();
  context.fill();
}
