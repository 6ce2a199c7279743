// SPDX-License-Identifier: Apache-2.0
// The network as rows of cells, for fabrics with too many links to draw as lines. Each link direction has a cell.

import type { Model } from "../data/model";
import { CellLayout, NAME_HEIGHT } from "./cell_layout";
import { type Drawing, type Extent, FONT, type Hit } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { type Encoding, HIDDEN } from "./encoding";
import { STEPS } from "./palette";
import { locateMarks, paintMarks } from "./rank_marks";
import type { ViewTransform } from "./view_transform";

/** The height in pixels that a name needs. */
const LINE = 15;

export class CellDrawing implements Drawing {
  readonly name = "cells";
  private readonly layout: CellLayout;

  constructor(model: Model) {
    this.layout = new CellLayout(model);
  }

  get width(): number {
    return this.layout.width;
  }

  get height(): number {
    return this.layout.height;
  }

  extentOfEnd(end: number): Extent {
    return [
      this.layout.x[end],
      this.layout.y[end],
      this.layout.x[end] + this.layout.cellWidth[end],
      this.layout.y[end] + this.layout.cellHeight,
    ];
  }

  positionOfNode(): undefined {
    return undefined;
  }

  find(encoding: Encoding, x: number, y: number): Hit {
    for (let end = 0; end < this.layout.x.length; end++) {
      if (y < this.layout.y[end] || y >= this.layout.y[end] + this.layout.cellHeight) continue;
      if (
        x >= this.layout.x[end] &&
        x < this.layout.x[end] + this.layout.cellWidth[end] &&
        encoding.steps[end] !== HIDDEN
      )
        return { end };
    }
    return {};
  }

  paint(context: DrawingContext, encoding: Encoding, view: ViewTransform, width: number, height: number): void {
    const batches: number[][] = Array.from({ length: STEPS + 1 }, () => []);
    const tall = this.layout.cellHeight * view.scale;
    // Cells that are large enough are drawn with a gap.
    const gap = (size: number): number => (size > 4 ? 1 : 0);
    for (const end of this.layout.order) {
      if (encoding.steps[end] === HIDDEN) continue;
      const left = view.x + this.layout.x[end] * view.scale;
      const top = view.y + this.layout.y[end] * view.scale;
      if (left > width || top > height || top + tall < 0 || left + this.layout.cellWidth[end] * view.scale < 0)
        continue;
      batches[encoding.steps[end]].push(end);
    }
    batches.forEach((ends, batch) => {
      context.fillStyle = batch ? encoding.ramp[batch - 1] : encoding.theme.idle;
      for (let at = 0; at < ends.length; at++) {
        const first = ends[at];
        // Without gaps, successive cells of one colour in a column are drawn as one rectangle.
        if (!gap(tall)) while (at + 1 < ends.length && this.isBelow(ends[at], ends[at + 1])) at++;
        const wide = this.layout.cellWidth[first] * view.scale;
        const left = view.x + this.layout.x[first] * view.scale;
        const top = view.y + this.layout.y[first] * view.scale;
        const high = (this.layout.y[ends[at]] - this.layout.y[first]) * view.scale + tall;
        context.fillRect(left, top, Math.max(wide - gap(wide), 0.5), high - gap(tall));
      }
    });
    if (encoding.state.end !== undefined) this.highlight(context, encoding.state.end, view, encoding.theme.chosen);
    for (const end of encoding.unusedRoutes) this.highlight(context, end, view, encoding.theme.chosen);
    context.font = `12px ${FONT}`;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.fillStyle = encoding.theme.text;
    const above = NAME_HEIGHT * view.scale >= LINE;
    let last = Number.NEGATIVE_INFINITY;
    for (const { name, short, top, rows, folds } of this.layout.blocks) {
      const middle = view.y + (top + (rows * folds * this.layout.cellHeight) / 2) * view.scale + 4;
      if (above) context.fillText(name, Math.max(8, view.x), view.y + top * view.scale - 5);
      else if (middle - last >= LINE) {
        context.fillText(short, 8, middle);
        last = middle;
      }
    }
    paintMarks(
      context,
      encoding,
      locateMarks(encoding, view, (end) => this.extentOfEnd(end)),
    );
  }

  highlight(context: DrawingContext, end: number, view: ViewTransform, colour: string): void {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    const [wide, tall] = [this.layout.cellWidth[end] * view.scale, this.layout.cellHeight * view.scale];
    context.strokeRect(
      view.x + this.layout.x[end] * view.scale - 1,
      view.y + this.layout.y[end] * view.scale - 1,
      wide + 2,
      tall + 2,
    );
  }

  private isBelow(end: number, next: number): boolean {
    return (
      this.layout.x[end] === this.layout.x[next] &&
      Math.abs(this.layout.y[next] - this.layout.y[end] - this.layout.cellHeight) < 1e-3
    );
  }
}
