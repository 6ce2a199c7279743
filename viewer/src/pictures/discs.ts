// SPDX-License-Identifier: Apache-2.0
// Discs, for which `DrawingContext` has no method.

import type { DrawingContext } from "./drawing_context";

/** Fill a disc, as a polygon. */
export function fillDisc(context: DrawingContext, x: number, y: number, radius: number, sides: number): void {
  context.beginPath();
  for (let side = 0; side < sides; side++) {
    const angle = ((side + 0.5) / sides) * 2 * Math.PI;
    const corner: [number, number] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
    if (side) context.lineTo(...corner);
    else context.moveTo(...corner);
  }
  context.closePath();
  context.fill();
}
