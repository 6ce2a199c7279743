// SPDX-License-Identifier: Apache-2.0
// The problem's grid on a canvas, with a cell for each rank and planes of z side by side. A click or a frame selects
// ranks.

import type { RankGrid } from "../data/attributes";
import type { Encoding } from "../pictures/encoding";
import { element } from "../widgets/dom";

const SIDE = 720;
const LARGEST = 48;
const NO_RANK = -1;

export interface RankGridCanvasEvents {
  choose(ranks: number[]): void;
  describe(rank: number): string;
}

export class RankGridCanvas {
  readonly element = element("figure");
  readonly canvas = element("canvas");
  private readonly note = element("p");
  private readonly size: number;
  private readonly planes: number;
  private readonly columns: number;
  private readonly rows: number;
  /** The rank of each cell of the canvas. */
  private readonly rank: Int32Array;
  private cursor: [number, number] = [0, 0];
  private from: [number, number] | null = null;

  constructor(
    private readonly grid: RankGrid,
    private readonly events: RankGridCanvasEvents,
  ) {
    const [width, height, depth] = grid.extents.map((extent) => Math.max(extent, 1));
    // Number of planes in a row, so that the picture is as square as possible.
    this.planes = Math.max(1, Math.min(depth, Math.round(Math.sqrt((depth * height) / width))));
    const down = Math.ceil(depth / this.planes);
    this.columns = this.planes * width + (this.planes - 1);
    this.rows = down * height + (down - 1);
    this.size = Math.max(1, Math.min(LARGEST, Math.floor(SIDE / Math.max(this.columns, this.rows))));
    this.rank = new Int32Array(this.columns * this.rows).fill(NO_RANK);
    for (let rank = 0; rank < grid.position.length / 3; rank++) {
      const cell = this.cellOf(rank);
      if (cell) this.rank[cell[0] * this.columns + cell[1]] = rank;
    }
    this.canvas.id = "domain";
    this.canvas.className = "matrix domain";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute(
      "aria-label",
      "The problem's grid, a cell for each rank. The table below has the same values.",
    );
    this.canvas.width = this.columns * this.size;
    this.canvas.height = this.rows * this.size;
    this.note.className = "note";
    this.note.setAttribute("role", "status");
    const planes = depth > 1 ? `; ${depth} planes of z` : "";
    const caption = element(
      "figcaption",
      `x to the right, y down${planes}; click a rank, or drag a frame around several`,
    );
    this.element.append(this.canvas, caption, this.note);
    this.listen();
  }

  show(encoding: Encoding, colourOf: (rank: number) => string | undefined): void {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const { size } = this;
    context.fillStyle = encoding.theme.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const chosen = new Set(encoding.state.ranks);
    const gap = size > 6 ? 1 : 0;
    this.rank.forEach((rank, at) => {
      if (rank === NO_RANK) return;
      const [x, y] = [(at % this.columns) * size, Math.floor(at / this.columns) * size];
      context.fillStyle = colourOf(rank) ?? encoding.theme.idle;
      context.fillRect(x, y, size - gap, size - gap);
      if (!chosen.has(rank)) return;
      context.strokeStyle = encoding.theme.chosen;
      context.lineWidth = Math.min(3, size / 3);
      context.strokeRect(x + 1, y + 1, size - gap - 2, size - gap - 2);
    });
  }

  private cellOf(rank: number): [number, number] | undefined {
    const [x, y, z] = this.grid.position.subarray(3 * rank, 3 * rank + 3);
    if (x < 0 || y < 0 || z < 0) return undefined;
    const [width, height] = this.grid.extents;
    return [Math.floor(z / this.planes) * (height + 1) + y, (z % this.planes) * (width + 1) + x];
  }

  private listen(): void {
    const { canvas } = this;
    const at = (event: MouseEvent): [number, number] => {
      const limit = (part: number, count: number): number => Math.max(0, Math.min(count - 1, Math.floor(part * count)));
      const box = canvas.getBoundingClientRect();
      return [
        limit((event.clientY - box.top) / box.height, this.rows),
        limit((event.clientX - box.left) / box.width, this.columns),
      ];
    };
    canvas.addEventListener("pointerdown", (event) => {
      this.from = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.describe(at(event)));
    canvas.addEventListener("pointerup", (event) => {
      if (this.from) this.choose(this.from, at(event));
      this.from = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.note.textContent = "";
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        const move = (one: number, by: number, count: number): number => Math.max(0, Math.min(count - 1, one + by));
        this.cursor = [move(this.cursor[0], step[0], this.rows), move(this.cursor[1], step[1], this.columns)];
        this.describe(this.cursor);
      } else if (event.key === "Enter" || event.key === " ") this.choose(this.cursor, this.cursor);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  private describe([row, column]: [number, number]): void {
    const rank = this.rank[row * this.columns + column];
    this.note.textContent = rank === NO_RANK ? "" : this.events.describe(rank);
  }

  private choose(from: [number, number], to: [number, number]): void {
    const ranks: number[] = [];
    for (let row = Math.min(from[0], to[0]); row <= Math.max(from[0], to[0]); row++)
      for (let column = Math.min(from[1], to[1]); column <= Math.max(from[1], to[1]); column++) {
        const rank = this.rank[row * this.columns + column];
        if (rank !== NO_RANK) ranks.push(rank);
      }
    this.events.choose(ranks.sort((one, other) => one - other));
  }
}
