// SPDX-License-Identifier: Apache-2.0
// A matrix of pairs on a canvas. If the screen has too few pixels, a cell stands for several pairs.

import type { Pairs } from "../data/pairs";
import { LoadScale } from "../pictures/colour_scale";
import type { Encoding } from "../pictures/encoding";
import { element } from "../widgets/dom";

const SIDE = 360;

export interface PairMatrixEvents {
  /** Called when the user selects a cell; `pair` is the cell's pair with most bytes. */
  choose(pair: number): void;
  describe(pair: number, cellBytes: number, pairs: number): string;
}

export class PairMatrix {
  readonly element = element("figure");
  readonly canvas = element("canvas");
  private readonly note = element("p");
  private readonly perCell: number;
  private readonly cells: number;
  private sums = new Float64Array(0);
  private counts = new Uint32Array(0);
  /** [cell], the cell's pair with most bytes. */
  private largest = new Int32Array(0);
  private cursor: [number, number] = [0, 0];
  private encoding: Encoding | null = null;

  constructor(
    count: number,
    label: string,
    private readonly events: PairMatrixEvents,
  ) {
    this.perCell = Math.max(1, Math.ceil(count / SIDE));
    this.cells = Math.max(1, Math.ceil(count / this.perCell));
    this.canvas.className = "matrix";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${label}. The table below has the same values.`);
    this.note.className = "note";
    this.note.setAttribute("role", "status");
    const many = this.perCell > 1 ? `; a cell is ${this.perCell} × ${this.perCell}` : "";
    const caption = element("figcaption", `rows send, columns receive${many}`);
    this.element.append(caption, this.note, this.canvas);
    this.listen();
  }

  show(encoding: Encoding, pairs: Pairs, bytes: (pair: number) => number, isChosen: (pair: number) => boolean): void {
    this.encoding = encoding;
    const cells = this.cells * this.cells;
    this.sums = new Float64Array(cells);
    this.counts = new Uint32Array(cells);
    this.largest = new Int32Array(cells).fill(-1);
    const marked: number[] = [];
    for (let pair = 0; pair < pairs.count; pair++) {
      const amount = bytes(pair);
      const cell =
        Math.floor(pairs.source[pair] / this.perCell) * this.cells + Math.floor(pairs.destination[pair] / this.perCell);
      if (isChosen(pair)) marked.push(cell);
      if (!amount) continue;
      this.sums[cell] += amount;
      this.counts[cell]++;
      if (this.largest[cell] < 0 || amount > bytes(this.largest[cell])) this.largest[cell] = pair;
    }
    this.paint(marked);
  }

  private paint(marked: number[]): void {
    const { encoding } = this;
    // Whole pixels per cell, so that all cells are equal.
    const size = Math.max(1, Math.floor((2 * SIDE) / this.cells));
    this.canvas.width = size * this.cells;
    this.canvas.height = size * this.cells;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context || !encoding) return;
    let [least, most] = [Number.POSITIVE_INFINITY, 0];
    for (const sum of this.sums) {
      if (!sum) continue;
      least = Math.min(least, sum);
      most = Math.max(most, sum);
    }
    const scale = new LoadScale(most ? least : 0, most, encoding.state.log ?? false);
    context.fillStyle = encoding.theme.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.sums.forEach((sum, cell) => {
      if (!sum) return;
      context.fillStyle = encoding.theme.ramp[scale.step(sum)];
      context.fillRect((cell % this.cells) * size, Math.floor(cell / this.cells) * size, size, size);
    });
    context.strokeStyle = encoding.theme.chosen;
    context.lineWidth = 3;
    for (const cell of marked)
      context.strokeRect((cell % this.cells) * size - 1, Math.floor(cell / this.cells) * size - 1, size + 2, size + 2);
  }

  private listen(): void {
    const at = (event: MouseEvent): [number, number] => {
      const limit = (part: number): number => Math.max(0, Math.min(this.cells - 1, Math.floor(part * this.cells)));
      return [limit(event.offsetY / this.canvas.clientHeight), limit(event.offsetX / this.canvas.clientWidth)];
    };
    this.canvas.addEventListener("pointermove", (event) => this.describe(...at(event)));
    this.canvas.addEventListener("pointerleave", () => {
      this.note.textContent = "";
    });
    this.canvas.addEventListener("click", (event) => this.choose(...at(event)));
    this.canvas.addEventListener("keydown", (event) => {
      const steps: Record<string, [number, number]> = {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -1],
        ArrowRight: [0, 1],
      };
      const step = steps[event.key];
      if (step) {
        const move = (one: number, by: number): number => Math.max(0, Math.min(this.cells - 1, one + by));
        this.cursor = [move(this.cursor[0], step[0]), move(this.cursor[1], step[1])];
        this.describe(...this.cursor);
      } else if (event.key === "Enter" || event.key === " ") this.choose(...this.cursor);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  private describe(row: number, column: number): void {
    const cell = row * this.cells + column;
    const pair = this.largest[cell] ?? -1;
    const empty = `row ${row * this.perCell}, column ${column * this.perCell}: no traffic over links`;
    this.note.textContent = pair < 0 ? empty : this.events.describe(pair, this.sums[cell], this.counts[cell]);
  }

  private choose(row: number, column: number): void {
    const pair = this.largest[row * this.cells + column] ?? -1;
    if (pair >= 0) this.events.choose(pair);
  }
}
