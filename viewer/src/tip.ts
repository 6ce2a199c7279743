// SPDX-License-Identifier: Apache-2.0
// What is said of the thing that is pointed at; beside it, never on it.

import { byId, element } from "./dom";

const GAP = 14;

export type Box = [number, number, number, number];

export class Tip {
  private readonly element = byId("tip");

  hide(): void {
    this.element.hidden = true;
  }

  /**
   * Shows lines near a point, off a line or box that runs between two corners; all in CSS pixels
   * of the picture, which begins at the last two.
   */
  show(
    lines: string[],
    x: number,
    y: number,
    off: Box,
    width: number,
    height: number,
    [fromLeft, fromTop]: [number, number],
  ): void {
    const { element: tip } = this;
    tip.replaceChildren(...lines.map((line) => element("p", line)));
    tip.hidden = false;
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    const places = [
      [x + GAP, y + GAP],
      [x - GAP - wide, y + GAP],
      [x + GAP, y - GAP - high],
      [x - GAP - wide, y - GAP - high],
      [width - wide - 4, 4],
      [4, 4],
      [width - wide - 4, height - high - 4],
      [4, height - high - 4],
    ];
    const free = places.find(([left, top]) => {
      const inside = left >= 2 && top >= 2 && left + wide <= width - 2 && top + high <= height - 2;
      const box: Box = [left - 4, top - 4, left + wide + 4, top + high + 4];
      return inside && !crosses(off, box) && !contains(box, x, y);
    });
    const [left, top] = free ?? [Math.max(4, width - wide - 4), y > height / 2 ? 4 : Math.max(4, height - high - 4)];
    tip.style.left = `${fromLeft + left}px`;
    tip.style.top = `${fromTop + top}px`;
  }
}

function contains([left, top, right, bottom]: Box, x: number, y: number): boolean {
  return x >= left && x <= right && y >= top && y <= bottom;
}

/** Whether a line meets a box (Liang and Barsky). */
export function crosses([fromX, fromY, toX, toY]: Box, [left, top, right, bottom]: Box): boolean {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  let [enter, leave] = [0, 1];
  for (const [step, room] of [
    [-alongX, fromX - left],
    [alongX, right - fromX],
    [-alongY, fromY - top],
    [alongY, bottom - fromY],
  ]) {
    if (!step) {
      if (room < 0) return false;
      continue;
    }
    if (step < 0) enter = Math.max(enter, room / step);
    else leave = Math.min(leave, room / step);
  }
  return enter <= leave;
}
