// SPDX-License-Identifier: Apache-2.0
// The numbers that mark the most loaded groups of link directions in the picture, as in the list.

import { fillDisc } from "./discs";
import { type Extent, FONT } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { colouringEnd, type Encoding, HIDDEN, IDLE } from "./encoding";
import type { HalfLinks } from "./half_links";
import type { ViewTransform } from "./view_transform";

/** Radius of a number's disc. */
const RADIUS = 8;
/** Half the side of the name-free square around a number. */
export const MARK_SIZE = RADIUS + 1.5;
const SIDES = 24;
/** Positions of a number on its link direction, tried in this order; 0 is at the node. */
const PLACES = [0.5, 0.75, 0.3, 0.9, 0.15];

/** If no position on its link direction is free, a number moves aside in steps of this length. */
const ASIDE = 2 * RADIUS + 3;
/** Least width of numbered link directions, and width of the rim around them. */
const LEAST_WIDTH = 3.2;
const RIM = 2;

export interface RankMark {
  text: string;
  x: number;
  y: number;
}

/** Place the numbers, in pixels, so that they do not cover one another. */
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
    const { text, x, y } = marks[0];
    // Each placed number covers at most two of these positions.
    const aside = Array.from({ length: 2 * placed.length + 1 }, (_, at) => ({ text, x: x + (at + 1) * ASIDE, y }));
    placed.push([...marks, ...aside].find(isFree) ?? marks[0]);
  });
  return placed;
}

/** Return the link directions that have a number, the most loaded first. */
export function markedEnds({ groups }: Encoding): number[] {
  return groups.map(({ end }) => end);
}

/** Return the numbers and their positions. */
export function locateMarks(encoding: Encoding, view: ViewTransform, extentOfEnd: (end: number) => Extent): RankMark[] {
  return placeMarks(markedEnds(encoding).map(extentOfEnd), view);
}

/** Paint the numbered link directions over all others, wide enough to be visible among thousands. */
export function paintMarkedLinks(
  context: DrawingContext,
  encoding: Encoding,
  view: ViewTransform,
  links: HalfLinks,
  width: (end: number) => number,
): void {
  for (const end of markedEnds(encoding).reverse()) {
    if (!links.isDrawn(end)) continue;
    const wide = Math.max(width(end), LEAST_WIDTH);
    context.strokeStyle = encoding.theme.ground;
    context.lineWidth = wide + 2 * RIM;
    links.stroke(context, [end, end ^ 1], view);
    // Both halves have this width, so that the whole link is visible.
    for (const half of [end ^ 1, end]) {
      const step = encoding.steps[colouringEnd(encoding, half)];
      context.strokeStyle = step === IDLE || step === HIDDEN ? encoding.theme.node : encoding.ramp[step - 1];
      context.lineWidth = wide;
      links.stroke(context, [half], view);
    }
  }
}

export function paintMarks(context: DrawingContext, { theme }: Encoding, marks: readonly RankMark[]): void {
  context.font = `bold 11px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  // Number 1 is painted last, over the others.
  for (const { text, x, y } of [...marks].reverse()) {
    context.fillStyle = theme.ground;
    fillDisc(context, x, y, MARK_SIZE, SIDES);
    context.fillStyle = theme.text;
    fillDisc(context, x, y, RADIUS, SIDES);
    context.fillStyle = theme.ground;
    context.fillText(text, x, y + 0.5);
  }
}
