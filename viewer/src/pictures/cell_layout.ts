// SPDX-License-Identifier: Apache-2.0
// The layout of the picture of cells. Each level has blocks, each switch a column, and each link direction a cell.

import type { Model } from "../data/model";
import { railLetter } from "../text/names";

const WIDTH = 1000;
const HEIGHT = 560;
/** Maximum number of columns in a line; a block with more columns has several lines. */
const FOLD = 1000;
/** Height for the name of a block. */
export const NAME_HEIGHT = 22;
const TALLEST = 26;
/** The number of columns that limits the width of cells: blocks with fewer columns do not get wider cells. */
const FEWEST_COLUMNS = 24;

export interface CellBlock {
  name: string;
  /** A short name, written next to the block if the space above is too small. */
  short: string;
  top: number;
  /** Number of cells in a row. */
  columns: number;
  /** Number of cells in a column, and number of lines to which the columns are folded. */
  rows: number;
  folds: number;
}

/** The link directions of a block. */
interface CellGroup {
  rail: number;
  low: number;
  high: number;
  /** -1 towards the hosts, 1 away from them, 0 within a level. */
  direction: number;
  ends: number[];
}

export class CellLayout {
  readonly width = WIDTH;
  readonly height = HEIGHT;
  /** [link direction]: its cell's left edge, top edge and width. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly cellWidth: Float32Array;
  cellHeight = TALLEST;
  readonly blocks: CellBlock[] = [];
  /** All link directions, sorted by column. */
  readonly order: Uint32Array;

  constructor(private readonly model: Model) {
    this.x = new Float32Array(2 * model.links);
    this.y = new Float32Array(2 * model.links);
    this.cellWidth = new Float32Array(2 * model.links);
    this.order = new Uint32Array(2 * model.links);
    this.place(groupEnds(model));
  }

  private place(groups: CellGroup[]): void {
    const laid = groups.map((group) => ({ group, columns: sortIntoColumns(this.model, group) }));
    const shapes = laid.map(({ columns }) => {
      const rows = columns.reduce((most, column) => Math.max(most, column.length), 0);
      const folds = Math.ceil(columns.length / FOLD);
      return { rows, folds, columns: Math.ceil(columns.length / folds) };
    });
    const lines = shapes.reduce((sum, { rows, folds }) => sum + rows * folds, 0);
    this.cellHeight = Math.min(TALLEST, (HEIGHT - NAME_HEIGHT * groups.length) / Math.max(lines, 1));
    let top = 0;
    let placed = 0;
    laid.forEach(({ group, columns }, at) => {
      const shape = shapes[at];
      top += NAME_HEIGHT;
      this.blocks.push({ ...nameGroup(this.model, group), top, ...shape });
      const wide = WIDTH / Math.max(shape.columns, FEWEST_COLUMNS);
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

function groupEnds(model: Model): CellGroup[] {
  const groups = new Map<string, CellGroup>();
  for (let end = 0; end < 2 * model.links; end++) {
    const [own, other] = [model.nodeLevel[model.endNode[end]], model.nodeLevel[model.endNode[end ^ 1]]];
    const [rail, low, high] = [model.nodeRail[model.endNode[end]], Math.min(own, other), Math.max(own, other)];
    const direction = Math.sign(other - own);
    const key = [rail, low, high, direction].join();
    const group = groups.get(key);
    if (group) group.ends.push(end);
    else groups.set(key, { rail, low, high, direction, ends: [end] });
  }
  return [...groups.values()].sort(
    (one, other) =>
      one.rail - other.rail || other.high - one.high || other.low - one.low || other.direction - one.direction,
  );
}

/**
 * Return the link directions of each column. A column contains a leaf switch's links to hosts, a switch's links to
 * higher switches, or, within a level, the links on which a node transmits.
 */
function sortIntoColumns(model: Model, { low, direction, ends }: CellGroup): number[][] {
  const { endNode, endPort, nodeLevel, nodeX } = model;
  const owning = (end: number): number => {
    if (!direction) return end;
    // Between hosts and leaves, each leaf has a column, since leaves are fewer. Between switches, each lower
    // switch has a column.
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

function nameGroup(model: Model, { rail, low, high, direction }: CellGroup): { name: string; short: string } {
  const letter = railLetter(model, rail);
  const name = (level: number): string => (level ? `level ${level}${letter}` : "hosts");
  const row = (level: number): string => (level ? `${level}${letter}` : "0");
  if (!direction) return { name: `within ${name(low)}, by transmitting switch`, short: row(low) };
  const column = low ? name(low) : name(high);
  const [from, to] = direction > 0 ? [low, high] : [high, low];
  const short = `${row(from)} → ${row(to)}`;
  return { name: `${name(from)} → ${name(to)}, a column for each switch of ${column}`, short };
}
