// SPDX-License-Identifier: Apache-2.0
// A slider for a range. Users drag across the slider, or move its two handles, also by keys.

import { element, onResize } from "./dom";

const STEP = 0.02;
const SLACK = 3;

export interface RangeOptions {
  label: string;
  /** Return the text of a position, from 0 to 1. */
  describe(part: number): string;
  /** Called with the selected range; null for the whole slider. `isRepeated` is true if a key is held down. */
  change(range: [number, number] | null, isRepeated: boolean): void;
}

export class RangeSlider {
  readonly element = element("div");
  readonly canvas = element("canvas");
  private readonly handles: HTMLElement[];
  private readonly shades = [element("div"), element("div")];
  private range: [number, number] = [0, 1];

  constructor(private readonly options: RangeOptions) {
    this.element.className = "range";
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", options.label);
    this.canvas.setAttribute("aria-hidden", "true");
    for (const shade of this.shades) shade.className = "shade";
    this.handles = [this.makeHandle(0), this.makeHandle(1)];
    this.element.append(this.canvas, ...this.shades, ...this.handles);
    this.listen();
    this.set(null);
  }

  /** Draw the slider when its size changes, and return the function that draws it. `paint` gets CSS pixels. */
  onPaint(paint: (context: CanvasRenderingContext2D, width: number, height: number) => void): () => void {
    const draw = (): void => {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const ratio = window.devicePixelRatio || 1;
      [this.canvas.width, this.canvas.height] = [Math.max(1, width * ratio), Math.max(1, height * ratio)];
      const context = this.canvas.getContext("2d");
      if (!context) return;
      context.scale(ratio, ratio);
      paint(context, width, height);
    };
    onResize(this.canvas, draw);
    return draw;
  }

  set(range: [number, number] | null): void {
    this.range = range ?? [0, 1];
    const [low, high] = this.range;
    this.shades[0].style.width = `${low * 100}%`;
    this.shades[1].style.width = `${(1 - high) * 100}%`;
    this.shades[1].style.right = "0";
    this.handles.forEach((handle, which) => {
      handle.style.left = `${this.range[which] * 100}%`;
      handle.setAttribute("aria-valuenow", String(Math.round(this.range[which] * 100)));
      handle.setAttribute("aria-valuetext", this.options.describe(this.range[which]));
    });
  }

  private makeHandle(which: 0 | 1): HTMLElement {
    const handle = element("div");
    handle.className = "handle";
    handle.tabIndex = 0;
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-label", `${this.options.label}, ${which ? "to" : "from"}`);
    handle.setAttribute("aria-valuemin", "0");
    handle.setAttribute("aria-valuemax", "100");
    handle.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = {
        ArrowLeft: -STEP,
        ArrowDown: -STEP,
        ArrowRight: STEP,
        ArrowUp: STEP,
        PageDown: -5 * STEP,
        PageUp: 5 * STEP,
        Home: -1,
        End: 1,
      };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      this.moveHandle(which, this.range[which] + step);
      this.notify(event.repeat);
    });
    return handle;
  }

  private moveHandle(which: 0 | 1, part: number): void {
    const [low, high] = this.range;
    this.set(which ? [low, clamp(part, low, 1)] : [clamp(part, 0, high), high]);
  }

  private notify(isRepeated = false): void {
    const [low, high] = this.range;
    this.options.change(low <= 0 && high >= 1 ? null : [low, high], isRepeated);
  }

  private listen(): void {
    let drag: { from: number; x: number; handle: 0 | 1 | null } | null = null;
    const partAt = (event: PointerEvent): number => {
      const box = this.element.getBoundingClientRect();
      return clamp((event.clientX - box.left) / Math.max(box.width, 1), 0, 1);
    };
    this.element.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const which = this.handles.indexOf(event.target as HTMLElement);
      drag = { from: partAt(event), x: event.clientX, handle: which < 0 ? null : (which as 0 | 1) };
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!drag || Math.abs(event.clientX - drag.x) < SLACK) return;
      const part = partAt(event);
      if (drag.handle !== null) this.moveHandle(drag.handle, part);
      else this.set([Math.min(drag.from, part), Math.max(drag.from, part)]);
    });
    this.element.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const moved = Math.abs(event.clientX - drag.x) >= SLACK;
      // A click next to the handles clears the range.
      if (!moved && drag.handle === null) this.set(null);
      drag = null;
      this.notify();
    });
    this.element.addEventListener("pointercancel", () => {
      drag = null;
    });
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
