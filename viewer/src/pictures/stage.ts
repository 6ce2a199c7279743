// SPDX-License-Identifier: Apache-2.0
// A canvas that a picture is on: zoom to the pointer, pan by the picture that there is, what is under the pointer.

import { onResize } from "../dom";
import { type Drawing, type Hit, MARGIN, type Transform } from "./drawing";
import type { Look } from "./look";

const REACH = 6;
const FARTHEST = 0.2;
const NEAREST = 5000;
const SETTLED_MS = 120;
const WHEEL_SPEED = 0.0015;
const CLICK_SLACK = 4;

export interface StageEvents {
  /** The pointer is over something, or over nothing; at CSS pixels of the canvas. */
  hover(hit: Hit, x: number, y: number): void;
  choose(hit: Hit): void;
  /** The view moves. */
  move(view: Transform): void;
  /** The view has changed and come to rest. */
  settle(): void;
}

export class Stage {
  private readonly context: CanvasRenderingContext2D;
  private view: Transform = { scale: 1, x: 0, y: 0 };
  private cached: { picture: HTMLCanvasElement; view: Transform } | null = null;
  private drawing: Drawing | null = null;
  private look: Look | null = null;
  private marked: number | null = null;
  private timer = 0;
  private frame = 0;
  /** Whether the next picture is another one, not the same elsewhere. */
  private turning = false;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly events: StageEvents,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas to draw on");
    this.context = context;
    this.listen();
    onResize(canvas, () => this.refit());
  }

  /** Shows a look; another drawing, or another place in it, is gone to first. */
  show(drawing: Drawing, look: Look): void {
    const moved = this.drawing !== drawing || String(look.state.at ?? "") !== String(this.at() ?? "");
    [this.drawing, this.look] = [drawing, look];
    drawing.turnTo?.(look.state.turn);
    if (moved) this.goTo(look.state.at);
    this.redraw();
  }

  /** Where the view is, for the address: middle and zoom; undefined where it is the whole picture. */
  at(): number[] | undefined {
    const { width, height } = this.size();
    const { scale, x, y } = this.fitted();
    const same = Math.abs(this.view.x - x) < 0.5 && Math.abs(this.view.y - y) < 0.5;
    if (same && Math.abs(this.view.scale / scale - 1) < 1e-3) return undefined;
    const middle = [(width / 2 - this.view.x) / this.view.scale, (height / 2 - this.view.y) / this.view.scale];
    return [...middle, this.view.scale / scale].map((each) => Number(each.toPrecision(9)));
  }

  /** Fits the whole picture into the canvas, turned as it was at first. */
  fit(): void {
    this.drawing?.turnTo?.(undefined);
    this.view = this.fitted();
    this.redraw();
    this.events.move(this.view);
    this.events.settle();
  }

  /** Zooms about a point, the middle unless told. */
  zoom(factor: number, x = this.size().width / 2, y = this.size().height / 2): void {
    const fitted = this.fitted().scale;
    const scale = Math.min(Math.max(this.view.scale * factor, fitted * FARTHEST), fitted * NEAREST);
    const applied = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * applied, y: y - (y - this.view.y) * applied };
    this.move();
  }

  pan(x: number, y: number): void {
    this.view = { scale: this.view.scale, x: this.view.x + x, y: this.view.y + y };
    this.move();
  }

  /** Moves as another stage does, without a word. */
  follow(view: Transform): void {
    this.view = { ...view };
    // They share a picture, which may have been turned.
    this.turning = this.drawing?.roll !== undefined;
    this.showMoved();
  }

  /** Turns what can be turned, so many CSS pixels of its ball; moves the rest, and that too where `moves`. */
  steer(x: number, y: number, moves: boolean): void {
    const { width, height } = this.size();
    if (moves || !this.drawing?.roll) this.pan(x, y);
    else this.roll(width / 2, height / 2, width / 2 - x, height / 2 - y);
  }

  private roll(fromX: number, fromY: number, toX: number, toY: number): void {
    const { width, height } = this.size();
    const radius = Math.max(Math.min(width, height) / 2, 1);
    const onBall = (x: number, y: number): [number, number] => [(x - width / 2) / radius, (y - height / 2) / radius];
    this.drawing?.roll?.(onBall(fromX, fromY), onBall(toX, toY));
    this.turning = true;
    this.move();
  }

  /** Where half of a link is: the middle of it, in CSS pixels of the canvas. */
  locateEnd(end: number): [number, number] {
    const [left, top, right, bottom] = this.placeOfEnd(end);
    return [(left + right) / 2, (top + bottom) / 2];
  }

  /** Where a link end begins and ends, in CSS pixels of the canvas. */
  placeOfEnd(end: number): [number, number, number, number] {
    const [left, top, right, bottom] = this.drawing?.placeOfEnd(end) ?? [0, 0, 0, 0];
    return [this.toX(left), this.toY(top), this.toX(right), this.toY(bottom)];
  }

  locateNode(node: number): [number, number] | undefined {
    const place = this.drawing?.placeOfNode(node);
    return place && [this.toX(place[0]), this.toY(place[1])];
  }

  find(x: number, y: number): Hit {
    if (!this.drawing || !this.look) return {};
    const { scale } = this.view;
    return this.drawing.find(this.look, (x - this.view.x) / scale, (y - this.view.y) / scale, REACH / scale);
  }

  /** Has a link end stand out, or none. */
  mark(end: number | null): void {
    if (end === this.marked) return;
    this.marked = end;
    this.blit();
  }

  /** Moves the view so that a link end is in it. */
  reveal(end: number): void {
    const { width, height } = this.size();
    const [x, y] = this.locateEnd(end);
    if (x < 0 || y < 0 || x > width || y > height) this.pan(width / 2 - x, height / 2 - y);
  }

  get transform(): Transform {
    return this.view;
  }

  /** Draws all anew. */
  redraw(): void {
    window.clearTimeout(this.timer);
    this.draw();
  }

  private draw(): void {
    this.turning = false;
    if (!this.drawing || !this.look) return;
    const { width, height, ratio } = this.size();
    const picture = this.cached?.picture ?? document.createElement("canvas");
    picture.width = Math.max(1, Math.round(width * ratio));
    picture.height = Math.max(1, Math.round(height * ratio));
    const context = picture.getContext("2d", { alpha: false });
    if (!context) return;
    context.scale(ratio, ratio);
    context.fillStyle = this.look.theme.ground;
    context.fillRect(0, 0, width, height);
    this.drawing.paint(context, this.look, this.view, width, height);
    this.cached = { picture, view: { ...this.view } };
    this.blit();
  }

  size(): { width: number; height: number; ratio: number } {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight, ratio: window.devicePixelRatio || 1 };
  }

  private fitted(): Transform {
    const { width, height } = this.size();
    const free = {
      width: Math.max(width - MARGIN.left - MARGIN.right, 1),
      height: Math.max(height - MARGIN.top - MARGIN.bottom, 1),
    };
    const [across, down] = [this.drawing?.width ?? 1, this.drawing?.height ?? 1];
    const scale = Math.min(free.width / across, free.height / down);
    return {
      scale,
      x: MARGIN.left + (free.width - scale * across) / 2,
      y: MARGIN.top + (free.height - scale * down) / 2,
    };
  }

  private goTo(at: number[] | undefined): void {
    this.view = this.fitted();
    if (!at) return;
    const { width, height } = this.size();
    const scale = this.view.scale * Math.min(Math.max(at[2], FARTHEST), NEAREST);
    this.view = { scale, x: width / 2 - at[0] * scale, y: height / 2 - at[1] * scale };
  }

  /** After a change of size: the same place stays in the middle. */
  private refit(): void {
    this.goTo(this.look?.state.at);
    this.redraw();
  }

  private move(): void {
    this.showMoved();
    this.events.move(this.view);
  }

  /** Moves the picture that there is; draws it anew when the hand rests. */
  private showMoved(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        if (this.turning) this.draw();
        else this.blit();
      });
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.drawing?.turnTo?.(this.drawing.turned);
      this.redraw();
      this.events.settle();
    }, SETTLED_MS);
  }

  private blit(): void {
    if (!this.cached || !this.look || !this.drawing) return;
    const { picture, view } = this.cached;
    const { ratio } = this.size();
    const { canvas, context } = this;
    if (canvas.width !== picture.width || canvas.height !== picture.height)
      [canvas.width, canvas.height] = [picture.width, picture.height];
    const factor = this.view.scale / view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.look.theme.ground;
    context.fillRect(0, 0, picture.width, picture.height);
    const [x, y] = [(this.view.x - view.x * factor) * ratio, (this.view.y - view.y * factor) * ratio];
    context.setTransform(factor, 0, 0, factor, x, y);
    context.drawImage(picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.marked !== null) this.drawing.mark(context, this.marked, this.view, this.look.theme.pointed);
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        this.zoom(Math.exp(-event.deltaY * lines * WHEEL_SPEED), event.offsetX, event.offsetY);
      },
      { passive: false },
    );
    let moved = 0;
    let held = false;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      [held, moved] = [true, 0];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) {
        moved += Math.abs(event.movementX) + Math.abs(event.movementY);
        const [x, y] = [event.offsetX, event.offsetY];
        if (event.shiftKey || !this.drawing?.roll) this.pan(event.movementX, event.movementY);
        else this.roll(x - event.movementX, y - event.movementY, x, y);
        this.events.hover({}, event.offsetX, event.offsetY);
      } else this.events.hover(this.find(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!held) return;
      held = false;
      if (moved <= CLICK_SLACK) this.events.choose(this.find(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointercancel", () => {
      held = false;
    });
    canvas.addEventListener("pointerleave", (event) => this.events.hover({}, event.offsetX, event.offsetY));
  }

  private toX(x: number): number {
    return this.view.x + x * this.view.scale;
  }

  private toY(y: number): number {
    return this.view.y + y * this.view.scale;
  }
}
