// SPDX-License-Identifier: Apache-2.0
// Who sends to whom: a cell for each pair of ranks, or of some ranks each where there are too many for the screen.

import { Scale, type Theme } from "./colours";
import { pairOf, type Share } from "./loads";

const SIDE = 320;

export class Matrix {
  private readonly perCell: number;
  private readonly cells: number;
  private pairs: Share[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly ranks: number,
    choose: (source: number, destination: number) => void,
  ) {
    this.perCell = Math.max(1, Math.ceil(ranks / SIDE));
    this.cells = Math.ceil(ranks / this.perCell);
    canvas.width = this.cells;
    canvas.height = this.cells;
    canvas.addEventListener("click", (event) => {
      const pair = this.find(event.offsetX, event.offsetY);
      if (pair) choose(...pair);
    });
  }

  /** Draws pairs, the greatest first as `LoadTable.shares` gives them. */
  show(pairs: Share[], logarithmic: boolean, theme: Theme): void {
    this.pairs = pairs;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const sums = new Float64Array(this.cells * this.cells);
    for (const { key, rough } of pairs) {
      const [source, destination] = this.cellOf(key);
      sums[source * this.cells + destination] += rough;
    }
    const used = sums.filter((sum) => sum > 0).sort();
    const scale = new Scale(used[0] ?? 0, used[used.length - 1] ?? 0, logarithmic);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, this.cells, this.cells);
    sums.forEach((sum, cell) => {
      if (!sum) return;
      context.fillStyle = theme.ramp[scale.step(sum)];
      context.fillRect(cell % this.cells, Math.floor(cell / this.cells), 1, 1);
    });
  }

  /** The greatest pair of the cell at a point of the canvas. */
  private find(x: number, y: number): [number, number] | null {
    const column = Math.floor((x / this.canvas.clientWidth) * this.cells);
    const row = Math.floor((y / this.canvas.clientHeight) * this.cells);
    for (const { key } of this.pairs) {
      const [source, destination] = this.cellOf(key);
      if (source === row && destination === column) return pairOf(key, this.ranks);
    }
    return null;
  }

  private cellOf(key: number): [number, number] {
    const [source, destination] = pairOf(key, this.ranks);
    return [Math.floor(source / this.perCell), Math.floor(destination / this.perCell)];
  }
}
