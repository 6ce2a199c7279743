// SPDX-License-Identifier: Apache-2.0
// The network as nodes and lines, each half of a line in the colour of what the node at that end sends.

import { type Model, SWITCH } from "../data/document";
import { STEPS } from "./colours";
import {
  type Drawing,
  FONT,
  type Hit,
  LETTER,
  MARGIN,
  type Place,
  paintRows,
  shorten,
  type Transform,
} from "./drawing";
import { type Geometry, placeNodes } from "./geometry";
import { Halves, paintArrow } from "./halves";
import type { Ink } from "./ink";
import { chosenNodes, HIDDEN, isOfSome, type Look, showsNode } from "./look";

const INK = 26;
const THINNEST = 0.6;
const MOST_ARROWS = 1500;
const ARROW = 5;
/** Pixels that no two arrows of one direction share. */
const APART = 14;

export class Lines implements Drawing {
  readonly name = "lines";
  readonly geometry: Geometry;
  private readonly halves: Halves;
  private readonly rows: Row[];

  constructor(
    private readonly model: Model,
    private readonly nodeColour: (node: number, look: Look) => string | null,
  ) {
    this.geometry = placeNodes(model);
    this.halves = new Halves(model, this.geometry);
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
    return this.halves.placeOf(end);
  }

  /** A node, else the nearest half of a link, one that is in use before others. */
  find(look: Look, x: number, y: number, reach: number): Hit {
    const { model, geometry } = this;
    let nearest = reach;
    let found: number | undefined;
    for (let node = 0; node < model.nodes; node++) {
      if (Math.abs(geometry.y[node] - y) > nearest || Math.abs(geometry.x[node] - x) > nearest) continue;
      const distance = Math.hypot(geometry.x[node] - x, geometry.y[node] - y);
      if (distance < nearest && showsNode(look, node)) [nearest, found] = [distance, node];
    }
    return found === undefined ? { end: this.halves.find(look, x, y, reach) } : { node: found };
  }

  paint(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    this.paintLinks(ink, look, view, width, height);
    this.paintNodes(ink, look, view, width, height);
    this.paintNames(ink, look, view, width, height);
    paintRows(ink, look, this.geometry.rows, view, height);
  }

  mark(ink: Ink, end: number, view: Transform, colour: string): void {
    this.halves.mark(ink, end, view, colour);
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
      this.halves.stroke(ink, batches[batch], view);
    }
    this.halves.strokeWays(ink, look, view);
    if (isOfSome(look.state)) this.paintArrows(ink, look, [...batches.slice(1).flat(), ...look.ways], view);
    if (look.state.end !== undefined) this.mark(ink, look.state.end, view, look.theme.chosen);
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
      const [x, y] = [left + (fromX + 0.7 * (toX - fromX)) * scale, top + (fromY + 0.7 * (toY - fromY)) * scale];
      const place = `${Math.round(x / APART)} ${Math.round(y / APART)} ${Math.sign(alongY)}`;
      if (taken.has(place)) continue;
      taken.add(place);
      paintArrow(ink, [x, y], [alongX, alongY], 0.7);
    }
  }

  private paintNodes(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    const { model, geometry } = this;
    const host = Math.min(Math.max(view.scale * 0.6, 1.2), 10);
    const chosen = chosenNodes(look);
    for (let node = 0; node < model.nodes; node++) {
      const [x, y] = [view.x + geometry.x[node] * view.scale, view.y + geometry.y[node] * view.scale];
      if (x < -12 || y < -12 || x > width + 12 || y > height + 12 || !showsNode(look, node)) continue;
      const colour = this.nodeColour(node, look);
      const size = model.nodeKind[node] === SWITCH ? Math.min(host * 1.5 + 1, 12) : colour ? host + 1.5 : host;
      ink.fillStyle = colour ?? look.theme.node;
      ink.fillRect(x - size / 2, y - size / 2, size, colour ? size * 1.6 : size);
      if (!chosen.has(node)) continue;
      ink.strokeStyle = look.theme.chosen;
      ink.lineWidth = 2;
      ink.strokeRect(x - size / 2 - 3, y - size / 2 - 3, size + 6, (colour ? size * 1.6 : size) + 6);
    }
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
        if (x < half + left || x > width - half || !showsNode(look, node)) continue;
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
