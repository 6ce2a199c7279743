// SPDX-License-Identifier: Apache-2.0
// The picture of the network on a canvas: zoom to the pointer, pan, and what is under the pointer.

import { Scale, STEPS, type Theme } from "./colours";
import type { Model } from "./document";
import { type Geometry, placeNodes } from "./geometry";
import type { Amounts } from "./loads";

const MARGIN = { left: 64, right: 24, top: 28, bottom: 28 };
const REACH = 6;
const NEAREST = 4000;
const SETTLED_MS = 120;
const INK = 26;
const SWITCH = 1;

export interface Hit {
  node?: number;
  end?: number;
}

export class Network {
  readonly geometry: Geometry;
  private readonly context: CanvasRenderingContext2D;
  private view = { scale: 1, x: 0, y: 0 };
  private cached: { picture: HTMLCanvasElement; view: { scale: number; x: number; y: number } } | null = null;
  private amounts: Amounts | null = null;
  private scale = new Scale(0, 0, false);
  private chosen: number | null = null;
  private timer = 0;
  private frame = 0;

  constructor(
    private readonly model: Model,
    private readonly canvas: HTMLCanvasElement,
    private readonly jobNodes: Set<number>,
    private theme: Theme,
  ) {
    this.geometry = placeNodes(model);
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas to draw on");
    this.context = context;
  }

  show(amounts: Amounts, scale: Scale, theme: Theme, chosen: number | null): void {
    [this.amounts, this.scale, this.theme, this.chosen] = [amounts, scale, theme, chosen];
    this.redraw();
  }

  /** Fits the whole network into the canvas. */
  fit(): void {
    const { width, height } = this.size();
    const free = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    const scale = Math.min(free.width / this.geometry.width, free.height / this.geometry.height);
    this.view = {
      scale,
      x: MARGIN.left + (free.width - scale * this.geometry.width) / 2,
      y: MARGIN.top + (free.height - scale * this.geometry.height) / 2,
    };
    this.redraw();
  }

  zoom(factor: number, x: number, y: number): void {
    const scale = Math.min(Math.max(this.view.scale * factor, 1e-3), NEAREST);
    const applied = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * applied, y: y - (y - this.view.y) * applied };
    this.move();
  }

  pan(x: number, y: number): void {
    this.view = { scale: this.view.scale, x: this.view.x + x, y: this.view.y + y };
    this.move();
  }

  /** Where a node is, in CSS pixels of the canvas. */
  locate(node: number): [number, number] {
    return [this.toX(this.geometry.x[node]), this.toY(this.geometry.y[node])];
  }

  /** Where half of a link is: the middle of it. */
  locateEnd(end: number): [number, number] {
    const [x, y] = this.locate(this.model.endNode[end]);
    const link = end >> 1;
    return [(x + this.toX(this.geometry.middleX[link])) / 2, (y + this.toY(this.geometry.middleY[link])) / 2];
  }

  /** What is at a point: a node, else the nearest half of a link, one that is in use before others. */
  find(x: number, y: number): Hit {
    const { model, geometry, view } = this;
    // In the layout's own units, so that what is far away costs a subtraction.
    const reach = REACH / view.scale;
    const [atX, atY] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
    let nearest = reach;
    let hit: Hit = {};
    for (let node = 0; node < model.nodes; node++) {
      if (Math.abs(geometry.y[node] - atY) > nearest || Math.abs(geometry.x[node] - atX) > nearest) continue;
      const distance = Math.hypot(geometry.x[node] - atX, geometry.y[node] - atY);
      if (distance < nearest) [nearest, hit] = [distance, { node }];
    }
    if (hit.node !== undefined) return hit;
    nearest = reach;
    for (let end = 0; end < 2 * model.links; end++) {
      const fromY = geometry.y[model.endNode[end]];
      const toY = geometry.middleY[end >> 1];
      if (atY < Math.min(fromY, toY) - reach || atY > Math.max(fromY, toY) + reach) continue;
      const fromX = geometry.x[model.endNode[end]];
      const toX = geometry.middleX[end >> 1];
      if (atX < Math.min(fromX, toX) - reach || atX > Math.max(fromX, toX) + reach) continue;
      const idle = this.amounts?.rough(end) ? 0 : reach / 2;
      const distance = distanceTo(atX, atY, fromX, fromY, toX, toY) + idle;
      if (distance < nearest) [nearest, hit] = [distance, { end }];
    }
    return hit;
  }

  redraw(): void {
    window.clearTimeout(this.timer);
    const { width, height, ratio } = this.size();
    const picture = document.createElement("canvas");
    picture.width = Math.max(1, Math.round(width * ratio));
    picture.height = Math.max(1, Math.round(height * ratio));
    const context = picture.getContext("2d", { alpha: false });
    if (!context) return;
    context.scale(ratio, ratio);
    this.paint(context, width, height);
    this.cached = { picture, view: { ...this.view } };
    this.blit();
  }

  paint(context: CanvasRenderingContext2D, width: number, height: number): void {
    context.fillStyle = this.theme.ground;
    context.fillRect(0, 0, width, height);
    this.paintLinks(context);
    this.paintNodes(context);
    this.paintRows(context, height);
  }

  /** Moves the picture that there is; draws it anew when the hand rests. */
  private move(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.blit();
      });
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.redraw(), SETTLED_MS);
  }

  private blit(): void {
    if (!this.cached) return;
    const { picture, view } = this.cached;
    const { ratio } = this.size();
    if (this.canvas.width !== picture.width || this.canvas.height !== picture.height) {
      this.canvas.width = picture.width;
      this.canvas.height = picture.height;
    }
    const factor = this.view.scale / view.scale;
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.fillStyle = this.theme.ground;
    this.context.fillRect(0, 0, picture.width, picture.height);
    this.context.setTransform(
      factor,
      0,
      0,
      factor,
      (this.view.x - view.x * factor) * ratio,
      (this.view.y - view.y * factor) * ratio,
    );
    this.context.drawImage(picture, 0, 0);
  }

  private paintLinks(context: CanvasRenderingContext2D): void {
    const { amounts, model } = this;
    if (!amounts) return;
    const batches: number[][] = Array.from({ length: STEPS + 1 }, () => []);
    for (let end = 0; end < 2 * model.links; end++) {
      const amount = amounts.rough(end);
      batches[amount ? 1 + this.scale.step(amount) : 0].push(end);
    }
    // As thin as must be for all to be seen, thicker with the zoom.
    const width = Math.min(Math.max(INK / Math.sqrt(2 * model.links + 1), 0.6), 2.4);
    batches.forEach((ends, batch) => {
      context.strokeStyle = batch ? this.theme.ramp[batch - 1] : this.theme.idle;
      context.lineWidth = batch ? width * (1 + batch / STEPS) : width * 0.7;
      this.stroke(context, ends);
    });
    if (this.chosen !== null) {
      context.strokeStyle = this.theme.chosen;
      context.lineWidth = 4;
      this.stroke(context, [this.chosen]);
    }
  }

  private stroke(context: CanvasRenderingContext2D, ends: number[]): void {
    const { endNode } = this.model;
    const { x, y, middleX, middleY } = this.geometry;
    context.beginPath();
    for (const end of ends) {
      context.moveTo(this.toX(x[endNode[end]]), this.toY(y[endNode[end]]));
      context.lineTo(this.toX(middleX[end >> 1]), this.toY(middleY[end >> 1]));
    }
    context.stroke();
  }

  private paintNodes(context: CanvasRenderingContext2D): void {
    const { model } = this;
    const spacing = this.view.scale;
    const host = Math.min(Math.max(spacing * 0.6, 1.2), 10);
    for (let node = 0; node < model.nodes; node++) {
      const [x, y] = this.locate(node);
      const job = this.jobNodes.has(node);
      const size = model.nodeKind[node] === SWITCH ? Math.min(host * 1.5 + 1, 12) : job ? host + 1.5 : host;
      context.fillStyle = job ? this.theme.job : this.theme.node;
      context.fillRect(x - size / 2, y - size / 2, size, job ? size * 1.6 : size);
    }
  }

  private paintRows(context: CanvasRenderingContext2D, height: number): void {
    context.fillStyle = this.theme.ground;
    if (this.geometry.rows.length) context.fillRect(0, 0, MARGIN.left - 12, height);
    context.fillStyle = this.theme.text;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const row of this.geometry.rows) context.fillText(row.name, 8, this.toY(row.y));
  }

  private toX(x: number): number {
    return this.view.x + x * this.view.scale;
  }

  private toY(y: number): number {
    return this.view.y + y * this.view.scale;
  }

  private size(): { width: number; height: number; ratio: number } {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight, ratio: window.devicePixelRatio || 1 };
  }
}

function distanceTo(x: number, y: number, fromX: number, fromY: number, toX: number, toY: number): number {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const squared = alongX * alongX + alongY * alongY;
  const part = squared ? Math.max(0, Math.min(1, ((x - fromX) * alongX + (y - fromY) * alongY) / squared)) : 0;
  return Math.hypot(x - fromX - part * alongX, y - fromY - part * alongY);
}
