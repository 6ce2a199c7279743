// SPDX-License-Identifier: Apache-2.0
// The columns of a picture with levels, where groups of nodes without traffic are folded to stubs.

import type { Model } from "../data/model";
import { formatCount } from "../format";
import { type BlockTree, findIdleGroups, growBlocks } from "./idle_groups";
import { separate } from "./row_spacing";

/** Fold groups if there are more columns than `FEW_COLUMNS`, and folding leaves at most `MOST_KEPT` of the width. */
const FEW_COLUMNS = 64;
const MOST_KEPT = 2 / 3;
/** Gap between hosts of different leaf switches, and between switches, in columns. */
const LEAF_GAP = 0.5;
const SWITCH_GAP = 0.35;
/** Width of a stub / width of its columns. */
export const STUB_WIDTH = 0.4;
/** Width of a switch next to a stub, in columns. */
const NODE_WIDTH = 0.8;

/** A box that replaces the idle nodes of a group in one row. */
export interface Stub {
  /** The group's node with the lowest index, which identifies the group in the page's URL. */
  group: number;
  nodes: number[];
  /** True if the stub's nodes are switches, false if they are hosts. */
  isSwitch: boolean;
  /** Width of the stub, in columns. */
  columns: number;
  /** Numbers of hosts and switches of the whole group. Adapters with separate columns count as hosts. */
  hosts: number;
  switches: number;
  noun: "host" | "adapter";
  /** The label of a stub that stands for a rail, or for groups of a dragonfly. No links to this stub are drawn. */
  label?: string;
}

export interface Folding {
  stubs: Stub[];
  /** The stub of each node; -1 for a node that is shown. */
  stubOf: Int32Array;
  /** x of each node; a folded node has the x of its stub. */
  x: Float64Array;
  /** y of each node; all rows of a rail without traffic have the same y. */
  y: ArrayLike<number>;
  /** The number of links between nodes that are shown. */
  links: number;
}

/**
 * Return the folding of the picture; null if a rail has no levels. If no rail is idle, pictures with few columns
 * (`FEW_COLUMNS`) are not folded, nor are pictures that would hardly become narrower (`MOST_KEPT`).
 */
export function foldIdle(model: Model, used: Uint8Array, open: readonly number[]): Folding | null {
  if (!model.header.rails.every((rail) => rail.has_levels)) return null;
  const tree = growBlocks(model);
  const count = tree.columnX.length;
  const idleRails = findIdleRails(model, used);
  const isOnIdleRail = (node: number): boolean => model.nodeLevel[node] > 0 && idleRails.includes(model.nodeRail[node]);
  const all = findIdleGroups(model, tree, used, isOnIdleRail);
  const narrowed = placeColumns(model, tree, all);
  const isNarrower = count > FEW_COLUMNS && narrowed.width <= MOST_KEPT * count;
  if (!isNarrower && !idleRails.length) return null;
  const groups = isNarrower ? all.filter(([first]) => !open.includes(first)) : [];
  const { left, right, width } = isNarrower && !open.length ? narrowed : placeColumns(model, tree, groups);
  const railStubs = idleRails.map((rail) => makeRailStub(model, rail)).filter(({ group }) => !open.includes(group));
  const stubs = [...groups.flatMap((group) => makeStubs(model, tree, group)), ...railStubs];
  const stubOf = new Int32Array(model.nodes).fill(-1);
  stubs.forEach(({ nodes }, at) => {
    for (const node of nodes) stubOf[node] = at;
  });
  const x = new Float64Array(model.nodes);
  const place = (nodes: readonly number[], where: number): void => {
    for (const node of nodes) x[node] = where;
  };
  const middle = (nodes: readonly number[]): number => {
    const columns = nodes.map((node) => tree.column[node]).filter((column) => column >= 0);
    const [first, last] = columns.reduce(([a, b], each) => [Math.min(a, each), Math.max(b, each)], [count, -1]);
    return (left[first] + right[last]) / 2;
  };
  const hosted = new Map(
    groups.map((nodes) => [nodes[0], nodes.some((node) => tree.column[node] >= 0) ? nodes : null]),
  );
  // Stubs of a group with hosts are centred on the hosts' columns. Other switches are spread over their rows.
  const rows = new Map<number, Map<number, number[][]>>();
  const enter = (nodes: number[]): void => {
    const [node] = nodes;
    const row = rows.get(model.nodeY[node]) ?? new Map<number, number[][]>();
    rows.set(model.nodeY[node], row);
    const block = tree.block[model.nodeLevel[node]][node];
    const items = row.get(block);
    if (items) items.push(nodes);
    else row.set(block, [nodes]);
  };
  for (const stub of stubs) {
    if (stub.label !== undefined) {
      place(stub.nodes, width / 2);
      continue;
    }
    const group = hosted.get(stub.group);
    if (group) place(stub.nodes, middle(group));
    else enter(stub.nodes);
  }
  for (let node = 0; node < model.nodes; node++) {
    if (stubOf[node] >= 0) continue;
    if (tree.column[node] >= 0) place([node], middle([node]));
    else enter([node]);
  }
  const stretches = findStretches(tree, { left, right, width });
  for (const [, row] of rows) spreadRow(model, row, stretches, width, place);
  clearStubs(model, stubs, stubOf, x, width);
  let links = 0;
  for (let link = 0; link < model.links; link++)
    if (stubOf[model.endNode[2 * link]] < 0 && stubOf[model.endNode[2 * link + 1]] < 0) links++;
  return { stubs, stubOf, x, y: flattenRails(model, railStubs), links };
}

/** In each row with stubs, move switches and stubs apart, so that no stub covers another item. */
function clearStubs(model: Model, stubs: readonly Stub[], stubOf: Int32Array, x: Float64Array, width: number): void {
  const rows = new Map<number, { nodes: number[]; columns: number }[]>();
  for (const { isSwitch, label, nodes, columns } of stubs)
    if (isSwitch && label === undefined) {
      const row = rows.get(model.nodeY[nodes[0]]) ?? [];
      row.push({ nodes, columns: STUB_WIDTH * columns });
      rows.set(model.nodeY[nodes[0]], row);
    }
  for (let node = 0; node < model.nodes; node++)
    if (stubOf[node] < 0 && model.nodeLevel[node]) rows.get(model.nodeY[node])?.push({ nodes: [node], columns: 0 });
  for (const row of rows.values()) {
    row.sort((one, other) => x[one.nodes[0]] - x[other.nodes[0]]);
    const wanted = row.map(({ nodes }) => x[nodes[0]]);
    const gaps = row.map(({ columns }, at) => {
      if (!at) return 0;
      const last = row[at - 1].columns;
      // Adjacent switches without stubs keep their distance, up to `SWITCH_GAP`.
      return columns || last
        ? (columns + last + NODE_WIDTH) / 2 + SWITCH_GAP
        : Math.min(wanted[at] - wanted[at - 1], SWITCH_GAP);
    });
    separate(wanted, gaps, width).forEach((where, at) => {
      for (const node of row[at].nodes) x[node] = where;
    });
  }
}

/** Return the rails without traffic, if other rails have traffic. */
function findIdleRails({ header, nodes, nodeRail, nodeLevel }: Model, used: Uint8Array): number[] {
  const isUsed = new Uint8Array(header.rails.length);
  for (let node = 0; node < nodes; node++) if (used[node] && nodeLevel[node]) isUsed[nodeRail[node]] = 1;
  return isUsed.includes(1) ? Array.from(isUsed.keys()).filter((rail) => !isUsed[rail]) : [];
}

function makeRailStub({ nodes, nodeRail, nodeLevel }: Model, rail: number): Stub {
  const own = Array.from({ length: nodes }, (_, node) => node).filter(
    (node) => nodeRail[node] === rail && nodeLevel[node],
  );
  const columns = stubWidth(own.length);
  const label = `idle rail: ${formatCount(BigInt(own.length))} switches`;
  return { group: own[0], nodes: own, isSwitch: true, columns, hosts: 0, switches: own.length, noun: "host", label };
}

/** Return y of each node. All switches of a rail without traffic get the row next to the hosts. */
function flattenRails({ nodeY }: Model, stubs: readonly Stub[]): ArrayLike<number> {
  const y = Float64Array.from(nodeY);
  for (const { nodes } of stubs) {
    const nearest = nodes.reduce((best, node) => (Math.abs(nodeY[node]) < Math.abs(best) ? nodeY[node] : best), 1e9);
    for (const node of nodes) y[node] = nearest;
  }
  return y;
}

interface Columns {
  left: Float64Array;
  right: Float64Array;
  width: number;
}

/** Return the edges of each column. All columns of a group have the edges of its stub. */
function placeColumns(model: Model, { column, columnX, host, block }: BlockTree, groups: number[][]): Columns {
  const count = columnX.length;
  const share = new Float64Array(count).fill(1);
  const isShown = new Uint8Array(model.nodes).fill(1);
  for (const group of groups) {
    const columns = countColumns(column, group);
    for (const node of group) {
      isShown[node] = 0;
      if (column[node] >= 0) share[column[node]] = stubWidth(columns) / columns;
    }
  }
  // From the leaves up, widen blocks whose columns are too narrow for their switches.
  for (let level = 1; level < block.length - 1; level++) {
    const own = block[level];
    const [width, above, below] = Array.from({ length: 3 }, () => new Float64Array(model.nodes));
    for (let each = 0; each < count; each++) width[own[host[each]]] += share[each];
    for (let node = 0; node < model.nodes; node++)
      if (model.nodeLevel[node] === level && isShown[node]) (model.nodeY[node] > 0 ? above : below)[own[node]]++;
    for (let each = 0; each < count; each++) {
      const at = own[host[each]];
      share[each] *= Math.max(1, (SWITCH_GAP * Math.max(above[at], below[at])) / width[at]);
    }
  }
  const leaf = block[Math.min(1, block.length - 1)];
  const [left, right] = [new Float64Array(count), new Float64Array(count)];
  let at = 0;
  for (let each = 0; each < count; each++) {
    const isFolded = share[each] < 1 && share[each - 1] < 1;
    if (each && leaf[host[each]] !== leaf[host[each - 1]] && !isFolded) at += LEAF_GAP;
    left[each] = at;
    at += share[each];
    right[each] = at;
  }
  return { left, right, width: at };
}

function countColumns(column: Int32Array, nodes: readonly number[]): number {
  return new Set(nodes.map((node) => column[node]).filter((each) => each >= 0)).size;
}

function stubWidth(columns: number): number {
  return 1.5 + 0.5 * Math.log2(columns);
}

/** Return a stub for each row of a group. */
function makeStubs(model: Model, { column }: BlockTree, group: number[]): Stub[] {
  const rows = new Map<number, number[]>();
  for (const node of group) {
    const row = rows.get(model.nodeY[node]);
    if (row) row.push(node);
    else rows.set(model.nodeY[node], [node]);
  }
  const columns = countColumns(column, group);
  const named = new Set(group.filter((node) => column[node] >= 0).map((node) => model.nodeHost[node])).size;
  const switches = group.filter((node) => column[node] < 0).length;
  return [...rows.values()].map((nodes) => ({
    group: group[0],
    nodes,
    isSwitch: column[nodes[0]] < 0,
    columns: stubWidth(columns || nodes.length),
    hosts: columns,
    switches,
    noun: named === columns ? "host" : "adapter",
  }));
}

/** For each level, return the range of x of each block with hosts. */
function findStretches({ host, block }: BlockTree, { left, right }: Columns): Map<number, [number, number]>[] {
  return block.map((own) => {
    const stretches = new Map<number, [number, number]>();
    host.forEach((node, column) => {
      const stretch = stretches.get(own[node]);
      if (stretch) stretch[1] = right[column];
      else stretches.set(own[node], [left[column], right[column]]);
    });
    return stretches;
  });
}

/** Spread the items of a row evenly over the range of their block. An item has one or several nodes. */
function spreadRow(
  model: Model,
  row: Map<number, number[][]>,
  stretches: Map<number, [number, number]>[],
  width: number,
  place: (nodes: readonly number[], where: number) => void,
): void {
  const order = (items: number[][]): number[][] =>
    items.sort((one, other) => model.nodeX[one[0]] - model.nodeX[other[0]]);
  const blocks = [...row].map(([block, items]) => ({
    items: order(items),
    stretch: stretches[model.nodeLevel[items[0][0]]].get(block),
  }));
  blocks.sort((one, other) => (one.stretch?.[0] ?? width) - (other.stretch?.[0] ?? width));
  const isApart = blocks.every(
    ({ stretch }, at) => stretch && (!at || stretch[0] >= (blocks[at - 1].stretch?.[1] ?? width)),
  );
  const spread = (items: number[][], [from, to]: [number, number]): void => {
    items.forEach((nodes, at) => {
      place(nodes, from + ((at + 0.5) * (to - from)) / items.length);
    });
  };
  if (!isApart) spread(order(blocks.flatMap(({ items }) => items)), [0, width]);
  else for (const { items, stretch } of blocks) spread(items, stretch ?? [0, width]);
}
