// SPDX-License-Identifier: Apache-2.0
// Link directions as straight lines, from the transmitting node to the middle of the link.

import type { Model } from "../data/model";
import type { Extent } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { type Encoding, HIDDEN, IDLE } from "./encoding";
import type { ViewTransform } from "./view_transform";

const SEGMENTS = 400;

/** Positions of nodes and of the middles of links, in units of the picture. */
export interface LinkPoints {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly middleX: Float64Array;
  readonly middleY: Float64Array;
  /** 1 for each link that is drawn; absent if all links are drawn. */
  readonly drawn?: Uint8Array;
}

export class HalfLinks {
  constructor(
    private readonly model: Model,
    private readonly points: LinkPoints,
  ) {}

  extentOf(end: number): Extent {
    const { x, y, middleX, middleY } = this.points;
    const node = this.model.endNode[end];
    return [x[node], y[node], middleX[end >> 1], middleY[end >> 1]];
  }

  /** Return true if a link is drawn; most links of folded nodes are not drawn. */
  isDrawn(end: number): boolean {
    return this.points.drawn?.[end >> 1] !== 0;
  }

  /** Return the nearest drawn half link within `reach` of a point; coloured half links come first. */
  find(encoding: Encoding, atX: number, atY: number, reach: number): number | undefined {
    const { endNode, links } = this.model;
    const { x, y, middleX, middleY } = this.points;
    let nearest = reach;
    let found: number | undefined;
    for (let end = 0; end < 2 * links; end++) {
      const [fromY, toY] = [y[endNode[end]], middleY[end >> 1]];
      if (atY < Math.min(fromY, toY) - reach || atY > Math.max(fromY, toY) + reach) continue;
      const [fromX, toX] = [x[endNode[end]], middleX[end >> 1]];
      if (atX < Math.min(fromX, toX) - reach || atX > Math.max(fromX, toX) + reach) continue;
      if (encoding.steps[end] === HIDDEN || !this.isDrawn(end)) continue;
      const idle = encoding.steps[end] === IDLE ? reach / 2 : 0;
      const distance = distanceTo(atX, atY, fromX, fromY, toX, toY) + idle;
      if (distance < nearest) [nearest, found] = [distance, end];
    }
    return found;
  }

  /** Stroke half links, a limited number at a time, since long paths take disproportionately long. */
  stroke(context: DrawingContext, ends: number[], { scale, x: left, y: top }: ViewTransform): void {
    const { endNode } = this.model;
    const { x, y, middleX, middleY } = this.points;
    for (let first = 0; first < ends.length; first += SEGMENTS) {
      context.beginPath();
      for (let at = first; at < Math.min(first + SEGMENTS, ends.length); at++) {
        const end = ends[at];
        context.moveTo(left + x[endNode[end]] * scale, top + y[endNode[end]] * scale);
        context.lineTo(left + middleX[end >> 1] * scale, top + middleY[end >> 1] * scale);
      }
      context.stroke();
    }
  }

  highlight(context: DrawingContext, end: number, view: ViewTransform, colour: string): void {
    context.strokeStyle = colour;
    context.lineWidth = 4;
    this.stroke(context, [end], view);
  }

  /** Draw dashed lines along the selected pair's routes where they have no traffic. */
  strokeUnusedRoutes(context: DrawingContext, { unusedRoutes, theme }: Encoding, view: ViewTransform): void {
    if (!unusedRoutes.length) return;
    context.strokeStyle = theme.chosen;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    this.stroke(context, this.reachStubs(unusedRoutes), view);
    context.setLineDash([]);
  }

  /** Return the half links to draw for a route: whole links to a stub, and no links inside a stub. */
  private reachStubs(ends: readonly number[]): number[] {
    const { x, y } = this.points;
    return ends.flatMap((end) => {
      if (this.isDrawn(end)) return [end];
      const [a, b] = [this.model.endNode[end], this.model.endNode[end ^ 1]];
      return x[a] === x[b] && y[a] === y[b] ? [] : [end, end ^ 1];
    });
  }
}

function distanceTo(x: number, y: number, fromX: number, fromY: number, toX: number, toY: number): number {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const squared = alongX * alongX + alongY * alongY;
  const part = squared ? Math.max(0, Math.min(1, ((x - fromX) * alongX + (y - fromY) * alongY) / squared)) : 0;
  return Math.hypot(x - fromX - part * alongX, y - fromY - part * alongY);
}
