// SPDX-License-Identifier: Apache-2.0
// Placement of names on a picture. Names do not overlap and do not cover nodes.

import { LETTER } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import type { Theme } from "./palette";

/** Upper bound of the mean width of a letter of the 11-pixel font, and half the height of a name. */
const WIDEST_LETTER = 7.3;
const HALF_HEIGHT = 7;
/** Side of the squares by which occupied areas are indexed. */
const CELL = 64;

type Area = [left: number, top: number, right: number, bottom: number];

export class Labels {
  private readonly taken = new Map<string, Area[]>();

  /** Names stay within `width` and `height` of the picture, and right of `left`. */
  constructor(
    private readonly left: number,
    private readonly width: number,
    private readonly height: number,
  ) {}

  /** Occupy a square, so that no name covers it. */
  block(x: number, y: number, half: number): void {
    this.blockBox(x, y, half, half);
  }

  /** Occupy a rectangle, given by its centre and half its width and height. */
  blockBox(x: number, y: number, across: number, up: number): void {
    this.take([x - across, y - up, x + across, y + up]);
  }

  /** Return the centre's x of a name, moved into the picture by at most half the name's width. */
  fit(text: string, x: number): number {
    const half = halfWidth(text);
    const inside = Math.min(Math.max(x, this.left + half), this.width - half);
    return Math.abs(inside - x) <= half ? inside : x;
  }

  /** Occupy the area of a name around a point. Return false if the area is occupied or outside the picture. */
  reserve(text: string, x: number, y: number): boolean {
    const half = halfWidth(text);
    const box: Area = [x - half, y - HALF_HEIGHT, x + half, y + HALF_HEIGHT];
    if (box[0] < this.left || box[1] < 0 || box[2] > this.width || box[3] > this.height) return false;
    if (cellsOf(box).some((cell) => this.taken.get(cell)?.some((other) => overlap(box, other)))) return false;
    this.take(box);
    return true;
  }

  private take(box: Area): void {
    for (const cell of cellsOf(box)) {
      const boxes = this.taken.get(cell);
      if (boxes) boxes.push(box);
      else this.taken.set(cell, [box]);
    }
  }
}

/** Write a name, centred at a point, on a background that covers lines. */
export function paintLabel(
  context: DrawingContext,
  { ground, text: colour }: Theme,
  text: string,
  x: number,
  y: number,
): void {
  context.fillStyle = ground;
  const wide = text.length * LETTER + 2;
  context.fillRect(x - wide / 2, y - HALF_HEIGHT, wide, 2 * HALF_HEIGHT - 1);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

function halfWidth(text: string): number {
  return (text.length * WIDEST_LETTER) / 2 + 1;
}

function overlap(one: Area, other: Area): boolean {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}

function cellsOf([left, top, right, bottom]: Area): string[] {
  const cells: string[] = [];
  for (let column = Math.floor(left / CELL); column <= Math.floor(right / CELL); column++)
    for (let row = Math.floor(top / CELL); row <= Math.floor(bottom / CELL); row++) cells.push(`${column} ${row}`);
  return cells;
}
