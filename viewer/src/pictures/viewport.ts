// SPDX-License-Identifier: Apache-2.0
// The canvas of a picture, with zoom, pan, rotation and the node or link under the pointer.

import { onResize } from "../widgets/dom";
import { type Drawing, type Hit, MARGIN, REACH } from "./drawing";
import type { Encoding } from "./encoding";
import { fitPicture, locateView, type ViewTransform, viewAt, zoomAbout } from "./view_transform";

const SETTLED_MS = 120;
const WHEEL_SPEED = 0.0015;
const CLICK_SLACK = 4;

export interface ViewportEvents {
  /** Called when the pointer is over the canvas. x and y are CSS pixels. `hit` may be empty. */
  hover(hit: Hit, x: number, y: number): void;
  choose(hit: Hit): void;
  /** Called when zoom or pan change. */
  move(view: ViewTransform): void;
  /** Called when a change of zoom or pan has ended. */
  settle(): void;
}

export class Viewport {
  private readonly context: CanvasRenderingContext2D;
  private view: ViewTransform = { scale: 1, x: 0, y: 0 };
  private cached: { picture: HTMLCanvasElement; view: ViewTransform } | null = null;
  private drawing: Drawing | null = null;
  private encoding: Encoding | null = null;
  private highlighted: number | null = null;
  private timer = 0;
  private frame = 0;
  /** True if the next frame needs a new picture; false if it moves the last picture. */
  private rotating = false;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly events: ViewportEvents,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas to draw on");
    this.context = context;
    this.listen();
    onResize(canvas, () => this.refit());
  }

  /** Show an encoding of a drawing, with the centre and zoom of the encoding's state. */
  show(drawing: Drawing, encoding: Encoding): void {
    const moved = this.drawing !== drawing || String(encoding.state.at ?? "") !== String(this.at() ?? "");
    [this.drawing, this.encoding] = [drawing, encoding];
    drawing.rotateTo?.(encoding.state.turn);
    if (moved) this.goTo(encoding.state.at);
    this.redraw();
  }

  /** Return the centre and zoom for the page's URL; undefined for the fitted picture. */
  at(): number[] | undefined {
    return locateView(this.view, this.fitted(), this.size());
  }

  /** Fit the whole picture into the canvas, in its initial rotation. */
  fit(): void {
    this.drawing?.rotateTo?.(undefined);
    this.view = this.fitted();
    this.redraw();
    this.events.move(this.view);
    this.events.settle();
  }

  /** Zoom about a point; by default the centre. */
  zoom(factor: number, x = this.size().width / 2, y = this.size().height / 2): void {
    this.view = zoomAbout(this.view, this.fitted(), factor, [x, y]);
    this.move();
  }

  pan(x: number, y: number): void {
    this.view = { scale: this.view.scale, x: this.view.x + x, y: this.view.y + y };
    this.move();
  }

  /** Show the same view as another viewport, without an event. */
  follow(view: ViewTransform): void {
    this.view = { ...view };
    // Both viewports share a drawing, which may have been rotated.
    this.rotating = this.drawing?.roll !== undefined;
    this.showMoved();
  }

  /** Pan the picture by CSS pixels. A three-dimensional picture is rotated instead, unless `pans` is true. */
  steer(x: number, y: number, pans: boolean): void {
    const { width, height } = this.size();
    if (pans || !this.drawing?.roll) this.pan(x, y);
    else this.roll(width / 2, height / 2, width / 2 - x, height / 2 - y);
  }

  private roll(fromX: number, fromY: number, toX: number, toY: number): void {
    const { width, height } = this.size();
    const radius = Math.max(Math.min(width, height) / 2, 1);
    const onBall = (x: number, y: number): [number, number] => [(x - width / 2) / radius, (y - height / 2) / radius];
    this.drawing?.roll?.(onBall(fromX, fromY), onBall(toX, toY));
    this.rotating = true;
    this.move();
  }

  /** Return the middle of a link direction, in CSS pixels of the canvas. */
  locateEnd(end: number): [number, number] {
    const [left, top, right, bottom] = this.extentOfEnd(end);
    return [(left + right) / 2, (top + bottom) / 2];
  }

  /** Return the line or box of a link direction, in CSS pixels of the canvas. */
  extentOfEnd(end: number): [number, number, number, number] {
    const [left, top, right, bottom] = this.drawing?.extentOfEnd(end) ?? [0, 0, 0, 0];
    return [this.toX(left), this.toY(top), this.toX(right), this.toY(bottom)];
  }

  locateNode(node: number): [number, number] | undefined {
    const place = this.drawing?.positionOfNode(node);
    return place && [this.toX(place[0]), this.toY(place[1])];
  }

  find(x: number, y: number): Hit {
    if (!this.drawing || !this.encoding) return {};
    const { scale } = this.view;
    return this.drawing.find(this.encoding, (x - this.view.x) / scale, (y - this.view.y) / scale, REACH / scale);
  }

  /** Highlight a link direction; null ends the highlight. */
  highlight(end: number | null): void {
    if (end === this.highlighted) return;
    this.highlighted = end;
    this.blit();
  }

  /** Pan so that a link direction is visible. */
  reveal(end: number): void {
    const { width, height } = this.size();
    const [x, y] = this.locateEnd(end);
    if (x < 0 || y < 0 || x > width || y > height) this.pan(width / 2 - x, height / 2 - y);
  }

  get transform(): ViewTransform {
    return this.view;
  }

  redraw(): void {
    window.clearTimeout(this.timer);
    this.draw();
  }

  private draw(): void {
    this.rotating = false;
    if (!this.drawing || !this.encoding) return;
    const { width, height, ratio } = this.size();
    const picture = this.cached?.picture ?? document.createElement("canvas");
    picture.width = Math.max(1, Math.round(width * ratio));
    picture.height = Math.max(1, Math.round(height * ratio));
    const context = picture.getContext("2d", { alpha: false });
    if (!context) return;
    context.scale(ratio, ratio);
    context.fillStyle = this.encoding.theme.ground;
    context.fillRect(0, 0, width, height);
    this.drawing.paint(context, this.encoding, this.view, width, height);
    this.cached = { picture, view: { ...this.view } };
    this.blit();
  }

  size(): { width: number; height: number; ratio: number } {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight, ratio: window.devicePixelRatio || 1 };
  }

  private fitted(): ViewTransform {
    const picture = { width: this.drawing?.width ?? 1, height: this.drawing?.height ?? 1 };
    return fitPicture(picture, this.size(), MARGIN);
  }

  private goTo(at: number[] | undefined): void {
    this.view = viewAt(at, this.fitted(), this.size());
  }

  /** Adapt to a new size of the canvas. The centre stays the same. */
  private refit(): void {
    this.goTo(this.encoding?.state.at);
    this.redraw();
  }

  private move(): void {
    this.showMoved();
    this.events.move(this.view);
  }

  /** Move the last picture, and draw a new picture when the movement ends. */
  private showMoved(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        if (this.rotating) this.draw();
        else this.blit();
      });
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.drawing?.rotateTo?.(this.drawing.rotation);
      this.redraw();
      this.events.settle();
    }, SETTLED_MS);
  }

  private blit(): void {
    if (!this.cached || !this.encoding || !this.drawing) return;
    const { picture, view } = this.cached;
    const { ratio } = this.size();
    const { canvas, context } = this;
    if (canvas.width !== picture.width || canvas.height !== picture.height)
      [canvas.width, canvas.height] = [picture.width, picture.height];
    const factor = this.view.scale / view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.encoding.theme.ground;
    context.fillRect(0, 0, picture.width, picture.height);
    const [x, y] = [(this.view.x - view.x * factor) * ratio, (this.view.y - view.y * factor) * ratio];
    context.setTransform(factor, 0, 0, factor, x, y);
    context.drawImage(picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.highlighted !== null)
      this.drawing.highlight(context, this.highlighted, this.view, this.encoding.theme.pointed);
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
