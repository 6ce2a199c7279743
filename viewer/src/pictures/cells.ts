// SPDX-License-Identifier: Apache-2.0
// The network level by level, a cell for each link end: for fabrics of so many links that lines would hide one another.

import type { Model } from "../data/document";
import { railLetter } from "../names";
import { STEPS } from "./colours";
import { type Drawing, FONT, type Hit, type Place, type Transform } from "./drawing";
import type { Ink } from "./ink";
import { HIDDEN, type Look } from "./look";

const WIDTH = 1000;
const HEIGHT = 560;
/** Columns beyond which a block is folded. */
const FOLD = 1000;
const NAME = 22;
/** Pixels that a name needs. */
const LINE = 15;
const TALLEST = 26;

interface Block {
  name: string;
  /** For beside the block, where there is no room above it. */
  short: string;
  top: number;
  /** Cells across. */
  columns: number;
  /** Cells of a column, and lines that the columns are folded into. */
  rows: number;
  folds: number;
}

/** Where link ends go before there are sizes. */
interface Group {
  rail: number;
  low: number;
  high: number;
  /** -1 towards the hosts, 1 from them, 0 within a level. */
  way: number;
  ends: number[];
}

export class Cells implements Drawing {
  readonly name = "cells";
  readonly width = WIDTH;
  readonly height = HEIGHT;
  private readonly x: Float32Array;
  private readonly y: Float32Array;
  private readonly cellWidth: Float32Array;
  private readonly blocks: Block[] = [];
  /** All link ends, column after column. */
  private readonly order: Uint32Array;
  private cellHeight = TALLEST;

  constructor(private readonly model: Model) {
    this.x = new Float32Array(2 * model.links);
    this.y = new Float32Array(2 * model.links);
    this.cellWidth = new Float32Array(2 * model.links);
    this.order = new Uint32Array(2 * model.links);
    this.place(groupEnds(model));
  }

  placeOfEnd(end: number): Place {
    return [this.x[end], this.y[end], this.x[end] + this.cellWidth[end], this.y[end] + this.cellHeight];
  }

  placeOfNode(): undefined {
    return undefined;
  }

  find(look: Look, x: number, y: number): Hit {
    for (let end = 0; end < this.x.length; end++) {
      if (y < this.y[end] || y >= this.y[end] + this.cellHeight) continue;
      if (x >= this.x[end] && x < this.x[end] + this.cellWidth[end] && look.steps[end] !== HIDDEN) return { end };
    }
    return {};
  }

  paint(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    const batches: number[][] = Array.from({ length: STEPS + 1 }, () => []);
    const tall = this.cellHeight * view.scale;
    // A gap where cells are large enough to have one.
    const gap = (size: number): number => (size > 4 ? 1 : 0);
    for (const end of this.order) {
      if (look.steps[end] === HIDDEN) continue;
      const left = view.x + this.x[end] * view.scale;
      const top = view.y + this.y[end] * view.scale;
      if (left > width || top > height || top + tall < 0 || left + this.cellWidth[end] * view.scale < 0) continue;
      batches[look.steps[end]].push(end);
    }
    batches.forEach((ends, batch) => {
      ink.fillStyle = batch ? look.ramp[batch - 1] : look.theme.idle;
      for (let at = 0; at < ends.length; at++) {
        const first = ends[at];
        // Cells of one colour below one another are one, where no gap is between them.
        if (!gap(tall)) while (at + 1 < ends.length && this.isBelow(ends[at], ends[at + 1])) at++;
        const wide = this.cellWidth[first] * view.scale;
        const left = view.x + this.x[first] * view.scale;
        const top = view.y + this.y[first] * view.scale;
        const high = (this.y[ends[at]] - this.y[first]) * view.scale + tall;
        ink.fillRect(left, top, Math.max(wide - gap(wide), 0.5), high - gap(tall));
      }
    });
    if (look.state.end !== undefined) this.mark(ink, look.state.end, view, look.theme.chosen);
    for (const end of look.ways) this.mark(ink, end, view, look.theme.chosen);
    ink.font = `12px ${FONT}`;
    ink.textAlign = "left";
    ink.textBaseline = "alphabetic";
    ink.fillStyle = look.theme.text;
    const above = NAME * view.scale >= LINE;
    let last = Number.NEGATIVE_INFINITY;
    for (const { name, short, top, rows, folds } of this.blocks) {
      const middle = view.y + (top + (rows * folds * this.cellHeight) / 2) * view.scale + 4;
      if (above) ink.fillText(name, Math.max(8, view.x), view.y + top * view.scale - 5);
      else if (middle - last >= LINE) {
        ink.fillText(short, 8, middle);
        last = middle;
      }
    }
  }

  mark(ink: Ink, end: number, view: Transform, colour: string): void {
    ink.strokeStyle = colour;
    ink.lineWidth = 2;
    const [wide, tall] = [this.cellWidth[end] * view.scale, this.cellHeight * view.scale];
    ink.strokeRect(view.x + this.x[end] * view.scale - 1, view.y + this.y[end] * view.scale - 1, wide + 2, tall + 2);
  }

  private isBelow(end: number, next: number): boolean {
    return this.x[end] === this.x[next] && Math.abs(this.y[next] - this.y[end] - this.cellHeight) < 1e-3;
  }

  private place(groups: Group[]): void {
    const laid = groups.map((group) => ({ group, columns: sortIntoColumns(this.model, group) }));
    const shapes = laid.map(({ columns }) => {
      const rows = columns.reduce((most, column) => Math.max(most, column.length), 0);
      const folds = Math.ceil(columns.length / FOLD);
      return { rows, folds, columns: Math.ceil(columns.length / folds) };
    });
    const lines = shapes.reduce((sum, { rows, folds }) => sum + rows * folds, 0);
    this.cellHeight = Math.min(TALLEST, (HEIGHT - NAME * groups.length) / Math.max(lines, 1));
    let top = 0;
    let placed = 0;
    laid.forEach(({ group, columns }, at) => {
      const shape = shapes[at];
      top += NAME;
      this.blocks.push({ ...nameGroup(this.model, group), top, ...shape });
      const wide = WIDTH / Math.max(shape.columns, 24);
      columns.forEach((ends, column) => {
        const fold = Math.floor(column / shape.columns);
        ends.forEach((end, row) => {
          this.x[end] = (column % shape.columns) * wide;
          this.y[end] = top + (fold * shape.rows + row) * this.cellHeight;
          this.cellWidth[end] = wide;
          this.order[placed++] = end;
        });
      });
      top += shape.rows * shape.folds * this.cellHeight;
    });
  }
}

function groupEnds(model: Model): Group[] {
  const groups = new Map<string, Group>();
  for (let end = 0; end < 2 * model.links; end++) {
    const [own, other] = [model.nodeLevel[model.endNode[end]], model.nodeLevel[model.endNode[end ^ 1]]];
    const [rail, low, high] = [model.nodeRail[model.endNode[end]], Math.min(own, other), Math.max(own, other)];
    const way = Math.sign(other - own);
    const key = [rail, low, high, way].join();
    const group = groups.get(key);
    if (group) group.ends.push(end);
    else groups.set(key, { rail, low, high, way, ends: [end] });
  }
  return [...groups.values()].sort(
    (one, other) => one.rail - other.rail || other.high - one.high || other.low - one.low || other.way - one.way,
  );
}

/** A column for each node of the level that has fewer; within a level for each node that sends. */
function sortIntoColumns(model: Model, { low, way, ends }: Group): number[][] {
  const { endNode, endPort, nodeLevel, nodeX } = model;
  const owning = (end: number): number => {
    if (!way) return end;
    // Hosts are many, their leaf switches few; further up the lower switches have the columns.
    const isLower = nodeLevel[endNode[end]] === low;
    return isLower === low > 0 ? end : end ^ 1;
  };
  const columns = new Map<number, number[]>();
  for (const end of ends) {
    const node = endNode[owning(end)];
    const column = columns.get(node);
    if (column) column.push(end);
    else columns.set(node, [end]);
  }
  const ordered = [...columns].sort(([one], [other]) => nodeX[one] - nodeX[other] || one - other);
  return ordered.map(([, column]) => {
    const across = (end: number): number => nodeX[endNode[owning(end) ^ 1]];
    return column.sort((one, other) => across(one) - across(other) || endPort[owning(one)] - endPort[owning(other)]);
  });
}

function nameGroup(model: Model, { rail, low, high, way }: Group): { name: string; short: string } {
  const letter = railLetter(model, rail);
  const name = (level: number): string => (level ? `level ${level}${letter}` : "hosts");
  const row = (level: number): string => (level ? `${level}${letter}` : "0");
  if (!way) return { name: `within ${name(low)}, by sending switch`, short: row(low) };
  const column = low ? name(low) : name(high);
  const [from, to] = way > 0 ? [low, high] : [high, low];
  const short = `${row(from)} → ${row(to)}`;
  return { name: `${name(from)} → ${name(to)}, a column for each switch of ${column}`, short };
}
