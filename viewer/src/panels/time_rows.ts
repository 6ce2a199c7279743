// SPDX-License-Identifier: Apache-2.0
// Ranks as rows over time on a canvas. A drag selects a time range. A drag over several rows also selects their ranks.

import type { Theme } from "../pictures/palette";
import { element, onResize } from "../widgets/dom";

const SLACK = 3;
const HEIGHT = 360;
const LABELS = 12;

type Range = [number, number];

export interface TimeRowsEvents {
  /** Called when the user has selected rows, or a time range as shares (0 to 1) of the whole time. */
  choose(time: Range | null, rows: Range | null): void;
  describe(row: number, part: number): string;
}

export interface TimeRowsContent {
  theme: Theme;
  /** The colour of a cell; undefined for a cell without colour. */
  colour(row: number, bin: number): string | undefined;
  /** The selected time, as shares (0 to 1) of the whole time. */
  time: Range | null;
  isChosen(row: number): boolean;
}

export class TimeRows {
  readonly element = element("div");
  private readonly canvas = element("canvas");
  private readonly frame = element("div");
  private readonly note = element("p");
  private readonly height: number;
  private content: TimeRowsContent | null = null;

  constructor(
    private readonly rows: number,
    private readonly bins: number,
    label: string,
    nameRow: (row: number) => string,
    private readonly events: TimeRowsEvents,
  ) {
    this.height = Math.max(3, Math.min(16, Math.floor(HEIGHT / rows)));
    this.canvas.id = "time-rows";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.canvas.style.height = `${rows * this.height}px`;
    this.frame.className = "frame";
    this.frame.hidden = true;
    this.note.className = "note";
    this.note.setAttribute("role", "status");
    const area = element("div", "", this.canvas, this.frame, ...this.makeLabels(nameRow));
    area.className = "rows";
    this.element.append(area, this.note);
    onResize(this.canvas, () => this.draw());
    this.listen();
  }

  show(content: TimeRowsContent): void {
    this.content = content;
    this.draw();
  }

  private makeLabels(nameRow: (row: number) => string): HTMLElement[] {
    const step = Math.ceil(Math.max(this.rows / LABELS, 13 / this.height));
    return Array.from({ length: Math.ceil(this.rows / step) }, (_, at) => {
      const label = element("span", nameRow(at * step));
      label.className = "row-label";
      label.setAttribute("aria-hidden", "true");
      label.style.top = `${at * step * this.height}px`;
      return label;
    });
  }

  private draw(): void {
    const { content } = this;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.max(1, width * ratio), Math.max(1, height * ratio)];
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context || !content) return;
    const { theme, time } = content;
    context.scale(ratio, ratio);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, width, height);
    const gap = this.height > 5 ? 1 : 0;
    for (let row = 0; row < this.rows; row++) {
      const isChosen = content.isChosen(row);
      for (let bin = 0; bin < this.bins; bin++) {
        const middle = (bin + 0.5) / this.bins;
        const isWithin = !time || (middle >= time[0] && middle <= time[1]);
        context.globalAlpha = isChosen && isWithin ? 1 : 0.2;
        context.fillStyle = content.colour(row, bin) ?? theme.idle;
        // Round to whole pixels, so that cells neither overlap nor have gaps.
        const [left, right] = [bin, bin + 1].map((edge) => Math.round((edge * width) / this.bins));
        context.fillRect(left, row * this.height, right - left, this.height - gap);
      }
    }
    context.globalAlpha = 1;
  }

  private listen(): void {
    const { canvas } = this;
    let from: { x: number; y: number } | null = null;
    const limit = (value: number, most: number): number => Math.max(0, Math.min(most, value));
    const place = (event: PointerEvent): { x: number; y: number } => {
      const box = canvas.getBoundingClientRect();
      return { x: limit(event.clientX - box.left, box.width), y: limit(event.clientY - box.top, box.height - 1) };
    };
    const rowAt = (y: number): number => limit(Math.floor(y / this.height), this.rows - 1);
    const selected = (to: { x: number; y: number }): { time: Range | null; rows: Range | null } => {
      const start = from ?? to;
      const width = Math.max(1, canvas.clientWidth);
      const hasTime = Math.abs(to.x - start.x) >= SLACK;
      const rows: Range = [rowAt(Math.min(start.y, to.y)), rowAt(Math.max(start.y, to.y))];
      const time: Range = [Math.min(start.x, to.x) / width, Math.max(start.x, to.x) / width];
      // A drag along a single row selects a time range, but no ranks.
      return { time: hasTime ? time : null, rows: hasTime && rows[0] === rows[1] ? null : rows };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      from = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const to = place(event);
      this.note.textContent = this.events.describe(rowAt(to.y), to.x / Math.max(1, canvas.clientWidth));
      if (from) this.showFrame(selected(to));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!from) return;
      const { time, rows } = selected(place(event));
      from = null;
      this.frame.hidden = true;
      this.events.choose(time, rows);
    });
    canvas.addEventListener("pointercancel", () => {
      from = null;
      this.frame.hidden = true;
    });
    canvas.addEventListener("pointerleave", () => {
      this.note.textContent = "";
    });
  }

  private showFrame({ time, rows }: { time: Range | null; rows: Range | null }): void {
    const [left, right] = time ?? [0, 1];
    const [first, last] = rows ?? [0, this.rows - 1];
    const { style } = this.frame;
    this.frame.hidden = false;
    style.left = `${left * 100}%`;
    style.width = `${(right - left) * 100}%`;
    style.top = `${first * this.height}px`;
    style.height = `${(last - first + 1) * this.height}px`;
  }
}
