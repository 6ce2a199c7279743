// SPDX-License-Identifier: Apache-2.0
// The numbers of the first link directions of the ranking, on the picture as in the list.

import { fillDisc } from "./discs";
import { type Extent, FONT } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import type { Encoding } from "./encoding";
import type { ViewTransform } from "./view_transform";

/** The number of link directions that have a number. */
export const MARKED = 3;

const RADIUS = 8;
const SIDES = 24;
/** Where on a link direction its number may be, from its node; the first that is free is taken. */
const PLACES = [0.5, 0.75, 0.3, 0.9, 0.15];

export interface RankMark {
  text: string;
  x: number;
  y: number;
}

/** Place the numbers, in pixels, so that they do not cover one another where that is possible. */
export function placeMarks(extents: Extent[], { scale, x: left, y: top }: ViewTransform): RankMark[] {
  const placed: RankMark[] = [];
  extents.forEach(([fromX, fromY, toX, toY], at) => {
    const marks = PLACES.map((part) => ({
      text: String(at + 1),
      x: left + (fromX + part * (toX - fromX)) * scale,
      y: top + (fromY + part * (toY - fromY)) * scale,
    }));
    const isFree = (mark: RankMark): boolean =>
      placed.every((other) => Math.hypot(other.x - mark.x, other.y - mark.y) > 2 * RADIUS + 2);
    placed.push(marks.find(isFree) ?? marks[0]);
  });
  return placed;
}

export function paintMarks(
  context: DrawingContext,
  { ranking, theme }: Encoding,
  view: ViewTransform,
  extentOfEnd: (end: number) => Extent,
): void {
  context.font = `bold 11px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  // The first is painted last.
  for (const { text, x, y } of placeMarks(ranking.first.slice(0, MARKED).map(extentOfEnd), view).reverse()) {
    context.fillStyle = theme.ground;
    fillDisc(context, x, y, RADIUS + 1.5, SIDES);
    context.fillStyle = theme.text;
    fillDisc(context, x, y, RADIUS, SIDES);
    context.fillStyle = theme.ground;
    context.fillText(text, x, y + 0.5);
  }
}
