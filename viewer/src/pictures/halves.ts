// SPDX-License-Identifier: Apache-2.0
// Halves of links as straight lines, from the node that sends to the middle of the link: drawn, and found.

import type { Model } from "../data/document";
import type { Place, Transform } from "./drawing";
import type { Ink } from "./ink";
import { HIDDEN, IDLE, type Look } from "./look";

const SEGMENTS = 400;

/** Where nodes and the middles of links are, in a picture's own units. */
export interface Points {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly middleX: Float64Array;
  readonly middleY: Float64Array;
}

export class Halves {
  constructor(
    private readonly model: Model,
    private readonly points: Points,
  ) {}

  placeOf(end: number): Place {
    const { x, y, middleX, middleY } = this.points;
    const node = this.model.endNode[end];
    return [x[node], y[node], middleX[end >> 1], middleY[end >> 1]];
  }

  /** The nearest half that is drawn and at most so far from a point; one with a colour before others. */
  find(look: Look, atX: number, atY: number, reach: number): number | undefined {
    const { endNode, links } = this.model;
    const { x, y, middleX, middleY } = this.points;
    let nearest = reach;
    let found: number | undefined;
    for (let end = 0; end < 2 * links; end++) {
      const [fromY, toY] = [y[endNode[end]], middleY[end >> 1]];
      if (atY < Math.min(fromY, toY) - reach || atY > Math.max(fromY, toY) + reach) continue;
      const [fromX, toX] = [x[endNode[end]], middleX[end >> 1]];
      if (atX < Math.min(fromX, toX) - reach || atX > Math.max(fromX, toX) + reach) continue;
      if (look.steps[end] === HIDDEN) continue;
      const idle = look.steps[end] === IDLE ? reach / 2 : 0;
      const distance = distanceTo(atX, atY, fromX, fromY, toX, toY) + idle;
      if (distance < nearest) [nearest, found] = [distance, end];
    }
    return found;
  }

  /** Strokes some lines at a time: a path's cost grows faster than what is in it. */
  stroke(ink: Ink, ends: number[], { scale, x: left, y: top }: Transform): void {
    const { endNode } = this.model;
    const { x, y, middleX, middleY } = this.points;
    for (let first = 0; first < ends.length; first += SEGMENTS) {
      ink.beginPath();
      for (let at = first; at < Math.min(first + SEGMENTS, ends.length); at++) {
        const end = ends[at];
        ink.moveTo(left + x[endNode[end]] * scale, top + y[endNode[end]] * scale);
        ink.lineTo(left + middleX[end >> 1] * scale, top + middleY[end >> 1] * scale);
      }
      ink.stroke();
    }
  }

  /** Has a half stand out. */
  mark(ink: Ink, end: number, view: Transform, colour: string): void {
    ink.strokeStyle = colour;
    ink.lineWidth = 4;
    this.stroke(ink, [end], view);
  }

  /** Dashes the ways that a chosen pair would take on rails where it sends nothing. */
  strokeWays(ink: Ink, { ways, theme }: Look, view: Transform): void {
    if (!ways.length) return;
    ink.strokeStyle = theme.chosen;
    ink.lineWidth = 1.5;
    ink.setLineDash([5, 4]);
    this.stroke(ink, ways, view);
    ink.setLineDash([]);
  }
}

/** Paints the head of an arrow about a point, `along` from there to its tip, `broad` times as broad as long. */
export function paintArrow(
  ink: Ink,
  [x, y]: [number, number],
  [alongX, alongY]: [number, number],
  broad: number,
): void {
  ink.beginPath();
  ink.moveTo(x + alongX, y + alongY);
  ink.lineTo(x - alongX - broad * alongY, y - alongY + broad * alongX);
  ink.lineTo(x - alongX + broad * alongY, y - alongY - broad * alongX);
  ink.closePath();
  ink.stroke();
  ink.fill();
}

function distanceTo(x: number, y: number, fromX: number, fromY: number, toX: number, toY: number): number {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const squared = alongX * alongX + alongY * alongY;
  const part = squared ? Math.max(0, Math.min(1, ((x - fromX) * alongX + (y - fromY) * alongY) / squared)) : 0;
  return Math.hypot(x - fromX - part * alongX, y - fromY - part * alongY);
}
