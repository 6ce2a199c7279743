// SPDX-License-Identifier: Apache-2.0
// Placement of a tooltip: near the pointer, but neither on the pointer nor on the link that the tooltip describes.

/** Left, top, right and bottom of a box, or x and y of the two ends of a line. */
export type Box = [number, number, number, number];

export interface Size {
  width: number;
  height: number;
}

const GAP = 14;
const EDGE = 4;
/** Clear space around the tooltip. */
const MARGIN = 4;

/**
 * Return left and top of a tooltip, in CSS pixels of the picture. `avoid` is the line of the link, or the pointer's
 * position if the tooltip describes a node.
 */
export function placeTooltip([x, y]: [number, number], avoid: Box, tooltip: Size, picture: Size): [number, number] {
  const { width, height } = tooltip;
  const [farthestLeft, farthestTop] = [picture.width - width - EDGE, picture.height - height - EDGE];
  const candidates: [number, number][] = [
    [x + GAP, y + GAP],
    [x - GAP - width, y + GAP],
    [x + GAP, y - GAP - height],
    [x - GAP - width, y - GAP - height],
    [farthestLeft, EDGE],
    [EDGE, EDGE],
    [farthestLeft, farthestTop],
    [EDGE, farthestTop],
  ];
  const free = candidates.find(([left, top]) => {
    const inside = left >= 2 && top >= 2 && left + width <= picture.width - 2 && top + height <= picture.height - 2;
    const box: Box = [left - MARGIN, top - MARGIN, left + width + MARGIN, top + height + MARGIN];
    return inside && !crossesBox(avoid, box) && !contains(box, x, y);
  });
  return free ?? [Math.max(EDGE, farthestLeft), y > picture.height / 2 ? EDGE : Math.max(EDGE, farthestTop)];
}

function contains([left, top, right, bottom]: Box, x: number, y: number): boolean {
  return x >= left && x <= right && y >= top && y <= bottom;
}

/** Return true if a line crosses a box (Liang-Barsky line clipping). */
export function crossesBox([fromX, fromY, toX, toY]: Box, [left, top, right, bottom]: Box): boolean {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  let [enter, leave] = [0, 1];
  for (const [step, distance] of [
    [-alongX, fromX - left],
    [alongX, right - fromX],
    [-alongY, fromY - top],
    [alongY, bottom - fromY],
  ]) {
    if (!step) {
      if (distance < 0) return false;
      continue;
    }
    if (step < 0) enter = Math.max(enter, distance / step);
    else leave = Math.min(leave, distance / step);
  }
  return enter <= leave;
}
