// SPDX-License-Identifier: Apache-2.0
// The network as nodes and lines, each half of a line in the colour of what the node at that end sends.

import type { Model } from "../data/document";
import { STEPS } from "./colours";
import { type Drawing, FONT, type Hit, MARGIN, type Place, paintRows, type Transform } from "./drawing";
import { type Geometry, placeNodes } from "./geometry";
import type { Ink } from "./ink";
import { HIDDEN, IDLE, type Look } from "./look";

const INK = 26;
const THINNEST = 0.6;
const SWITCH = 1;
const SEGMENTS = 400;
const MOST_ARROWS = 1500;
const ARROW = 5;
/** Pixels that no two arrows of one direction share. */
const APART = 14;
const LETTER = 6.6;

export class Lines implements Drawing {
  readonly name = "lines";
  readonly geometry: Geometry;
  private readonly rows: Row[];

  constructor(
    private readonly model: Model,
    private readonly nodeColour: (node: number, look: Look) => string | null,
  ) {
    this.geometry = placeNodes(model);
    this.rows = findRows(model, this.geometry);
  }

  get width(): number {
    return this.geometry.width;
  }

  get height(): number {
    return this.geometry.height;
  }

  placeOfNode(node: number): [number, number] {
    return [this.geometry.x[node], this.geometry.y[node]];
  }

  placeOfEnd(end: number): Place {
    const { x, y, middleX, middleY } = this.geometry;
    const node = this.model.endNode[end];
    return [x[node], y[node], middleX[end >> 1], middleY[end >> 1]];
  }

  /** A node, else the nearest half of a link, one that is in use before others. */
  find(look: Look, x: number, y: number, reach: number): Hit {
    const { model, geometry } = this;
    let nearest = reach;
    let hit: Hit = {};
    for (let node = 0; node < model.nodes; node++) {
      if (Math.abs(geometry.y[node] - y) > nearest || Math.abs(geometry.x[node] - x) > nearest) continue;
      const distance = Math.hypot(geometry.x[node] - x, geometry.y[node] - y);
      if (distance < nearest && this.isShown(look, node)) [nearest, hit] = [distance, { node }];
    }
    if (hit.node !== undefined) return hit;
    nearest = reach;
    for (let end = 0; end < 2 * model.links; end++) {
      const fromY = geometry.y[model.endNode[end]];
      const toY = geometry.middleY[end >> 1];
      if (y < Math.min(fromY, toY) - reach || y > Math.max(fromY, toY) + reach) continue;
      const fromX = geometry.x[model.endNode[end]];
      const toX = geometry.middleX[end >> 1];
      if (x < Math.min(fromX, toX) - reach || x > Math.max(fromX, toX) + reach) continue;
      if (look.steps[end] === HIDDEN) continue;
      const idle = look.steps[end] === IDLE ? reach / 2 : 0;
      const distance = distanceTo(x, y, fromX, fromY, toX, toY) + idle;
      if (distance < nearest) [nearest, hit] = [distance, { end }];
    }
    return hit;
  }

  paint(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    this.paintLinks(ink, look, view, width, height);
    this.paintNodes(ink, look, view, width, height);
    this.paintNames(ink, look, view, width, height);
    paintRows(ink, look, this.geometry.rows, view, height);
  }

  mark(ink: Ink, end: number, view: Transform, colour: string): void {
    const [fromX, fromY, toX, toY] = this.placeOfEnd(end);
    ink.strokeStyle = colour;
    ink.lineWidth = 4;
    ink.beginPath();
    ink.moveTo(view.x + fromX * view.scale, view.y + fromY * view.scale);
    ink.lineTo(view.x + toX * view.scale, view.y + toY * view.scale);
    ink.stroke();
  }

  private paintLinks(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    const batches: number[][] = Array.from({ length: STEPS + 1 }, () => []);
    for (let end = 0; end < look.steps.length; end++) {
      const step = look.steps[end];
      if (step !== HIDDEN && this.isInSight(end, view, width, height)) batches[step].push(end);
    }
    // As thin as must be for all to be seen.
    const faint = Math.min(Math.max(INK / Math.sqrt(2 * this.model.links + 1), 0.4), 1.6);
    const lit = batches.slice(1).reduce((sum, ends) => sum + ends.length, 0);
    const thin = Math.min(Math.max(INK / Math.sqrt(lit + 1), THINNEST), 2.4);
    const weight = (batch: number): number => (batch ? look.scale.weight(batch - 1) : -1);
    const order = Array.from(batches.keys()).sort((one, other) => weight(one) - weight(other));
    for (const batch of order) {
      ink.strokeStyle = batch ? look.ramp[batch - 1] : look.theme.idle;
      ink.lineWidth = batch ? widthOf(thin, weight(batch)) : Math.min(thin, faint);
      this.stroke(ink, batches[batch], view);
    }
    if (look.ways.length) {
      ink.strokeStyle = look.theme.chosen;
      ink.lineWidth = 1.5;
      ink.setLineDash([5, 4]);
      this.stroke(ink, look.ways, view);
      ink.setLineDash([]);
    }
    const { ranks, hosts, source, from, end, node } = look.state;
    const chosen = [ranks, hosts, source, from, end, node].some((each) => each !== undefined);
    if (chosen) this.paintArrows(ink, look, [...batches.slice(1).flat(), ...look.ways], view);
    if (end !== undefined) this.mark(ink, end, view, look.theme.chosen);
  }

  private isInSight(end: number, view: Transform, width: number, height: number): boolean {
    // No arrays are made here: it is called for each link end of each picture.
    const { x, y, middleX, middleY } = this.geometry;
    const node = this.model.endNode[end];
    const fromX = view.x + x[node] * view.scale;
    const toX = view.x + middleX[end >> 1] * view.scale;
    if ((fromX < 0 && toX < 0) || (fromX > width && toX > width)) return false;
    const fromY = view.y + y[node] * view.scale;
    const toY = view.y + middleY[end >> 1] * view.scale;
    return !((fromY < 0 && toY < 0) || (fromY > height && toY > height));
  }

  /** Strokes some lines at a time: a path's cost grows faster than what is in it. */
  private stroke(ink: Ink, ends: number[], { scale, x: left, y: top }: Transform): void {
    const { endNode } = this.model;
    const { x, y, middleX, middleY } = this.geometry;
    for (let first = 0; first < ends.length; first += SEGMENTS) {
      ink.beginPath();
      for (let at = first; at < Math.min(first + SEGMENTS, ends.length); at++) {
        const end = ends[at];
        ink.moveTo(left + x[endNode[end]] * scale, top + y[endNode[end]] * scale);
        ink.lineTo(left + middleX[end >> 1] * scale, top + middleY[end >> 1] * scale);
      }
      ink.stroke();
    }
  }

  /** Which way the traffic goes, where there is room to tell. */
  private paintArrows(ink: Ink, look: Look, ends: number[], { scale, x: left, y: top }: Transform): void {
    if (ends.length > MOST_ARROWS) return;
    ink.fillStyle = look.theme.text;
    ink.strokeStyle = look.theme.ground;
    ink.lineWidth = 1;
    const taken = new Set<string>();
    for (const end of ends) {
      const [fromX, fromY, toX, toY] = this.placeOfEnd(end);
      const length = Math.hypot(toX - fromX, toY - fromY);
      if (length * scale < 3 * ARROW) continue;
      const [alongX, alongY] = [((toX - fromX) / length) * ARROW, ((toY - fromY) / length) * ARROW];
      const [tipX, tipY] = [left + (fromX + 0.7 * (toX - fromX)) * scale, top + (fromY + 0.7 * (toY - fromY)) * scale];
      const place = `${Math.round(tipX / APART)} ${Math.round(tipY / APART)} ${Math.sign(alongY)}`;
      if (taken.has(place)) continue;
      taken.add(place);
      ink.beginPath();
      ink.moveTo(tipX + alongX, tipY + alongY);
      ink.lineTo(tipX - alongX - 0.7 * alongY, tipY - alongY + 0.7 * alongX);
      ink.lineTo(tipX - alongX + 0.7 * alongY, tipY - alongY - 0.7 * alongX);
      ink.closePath();
      ink.stroke();
      ink.fill();
    }
  }

  private isShown(look: Look, node: number): boolean {
    return look.state.rail === undefined || this.model.nodeRail[node] === look.state.rail;
  }

  private paintNodes(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    const { model, geometry } = this;
    const host = Math.min(Math.max(view.scale * 0.6, 1.2), 10);
    for (let node = 0; node < model.nodes; node++) {
      const [x, y] = [view.x + geometry.x[node] * view.scale, view.y + geometry.y[node] * view.scale];
      if (x < -12 || y < -12 || x > width + 12 || y > height + 12 || !this.isShown(look, node)) continue;
      const colour = this.nodeColour(node, look);
      const size = model.nodeKind[node] === SWITCH ? Math.min(host * 1.5 + 1, 12) : colour ? host + 1.5 : host;
      ink.fillStyle = colour ?? look.theme.node;
      ink.fillRect(x - size / 2, y - size / 2, size, colour ? size * 1.6 : size);
      if (!this.isChosen(look, node)) continue;
      ink.strokeStyle = look.theme.chosen;
      ink.lineWidth = 2;
      ink.strokeRect(x - size / 2 - 3, y - size / 2 - 3, size + 6, (colour ? size * 1.6 : size) + 6);
    }
  }

  private isChosen({ state }: Look, node: number): boolean {
    const host = this.model.nodeHost[node];
    if (state.node === node) return true;
    return host >= 0 && [state.from, state.to, ...(state.hosts ?? [])].includes(host);
  }

  /** Writes the nodes' names in rows that have room for all of theirs. */
  private paintNames(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    ink.font = `11px ${FONT}`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    const left = this.geometry.rows.length ? MARGIN.left : 0;
    for (const { y, nodes, gap, letters, below } of this.rows) {
      const top = view.y + y * view.scale + (below ? 21 : -14);
      if (gap * view.scale < letters * LETTER || top < 8 || top > height - 8) continue;
      for (const node of nodes) {
        const x = view.x + this.geometry.x[node] * view.scale;
        const half = (letters * LETTER) / 2;
        if (x < half + left || x > width - half || !this.isShown(look, node)) continue;
        const name = shorten(this.model.header.node_names[node]);
        ink.strokeStyle = look.theme.ground;
        ink.lineWidth = 3;
        ink.strokeText(name, x, top);
        ink.fillStyle = look.theme.text;
        ink.fillText(name, x, top);
      }
    }
  }
}

/** The more a line carries, the thicker; but lines of more than a pixel take many times as long where there are many. */
function widthOf(thin: number, weight: number): number {
  const width = thin * (1 + weight);
  return thin > THINNEST ? width : Math.min(width, 1);
}

interface Row {
  y: number;
  nodes: number[];
  /** The least distance of two that are beside one another. */
  gap: number;
  /** Of the longest name. */
  letters: number;
  below: boolean;
}

function findRows(model: Model, { x, y }: Geometry): Row[] {
  const rows = new Map<number, number[]>();
  for (let node = 0; node < model.nodes; node++) {
    const row = rows.get(y[node]);
    if (row) row.push(node);
    else rows.set(y[node], [node]);
  }
  return [...rows].map(([where, nodes]) => {
    nodes.sort((one, other) => x[one] - x[other]);
    // Adapters of one host on two rails are at one place.
    const apart = nodes.filter((node, at) => !at || x[node] - x[nodes[at - 1]] > 1e-6);
    const gaps = apart.slice(1).map((node, at) => x[node] - x[apart[at]]);
    const gap = gaps.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
    const letters = apart.reduce((most, node) => Math.max(most, shorten(model.header.node_names[node]).length), 0) + 2;
    const below = model.nodeKind[nodes[0]] !== SWITCH;
    return { y: where, nodes: apart, gap, letters, below };
  });
}

/** Names as they fit under a node: what tells nodes apart is mostly at the front. */
export function shorten(name: string): string {
  const shown = name.replace(/\p{C}/gu, "?");
  return shown.length > 24 ? `${shown.slice(0, 23)}…` : shown;
}

export function distanceTo(x: number, y: number, fromX: number, fromY: number, toX: number, toY: number): number {
  const [alongX, alongY] = [toX - fromX, toY - fromY];
  const squared = alongX * alongX + alongY * alongY;
  const part = squared ? Math.max(0, Math.min(1, ((x - fromX) * alongX + (y - fromY) * alongY) / squared)) : 0;
  return Math.hypot(x - fromX - part * alongX, y - fromY - part * alongY);
}
