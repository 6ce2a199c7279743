// SPDX-License-Identifier: Apache-2.0
// Groups of nodes without traffic, which a picture with levels can show as stubs. A group is the hosts of a leaf
// switch, leaf switches with their hosts, a pod, or adjacent switches of a level.

import type { Model } from "../data/model";

/** Smallest number of adjacent hosts or switches that become a stub. */
const FEWEST = 4;

/** The blocks of each level: sets of hosts and switches that are connected by links below or up to the level. */
export interface BlockTree {
  /** The column of each host, -1 for a switch. A host's adapters on two rails share a column. */
  readonly column: Int32Array;
  /** x of each column, ascending. */
  readonly columnX: Float64Array;
  /** A host of each column. */
  readonly host: Int32Array;
  /**
   * [level][node], the node's block; in the last element, links within the highest level join blocks too. Hosts of a
   * column share a block.
   */
  readonly block: Int32Array[];
}

export function growBlocks({ nodes, links, nodeX, nodeLevel, endNode }: Model): BlockTree {
  const hosts = Array.from({ length: nodes }, (_, node) => node).filter((node) => !nodeLevel[node]);
  const columnX = Float64Array.from(new Set(hosts.map((node) => nodeX[node]))).sort();
  const columnAt = new Map(Array.from(columnX, (x, column) => [x, column]));
  const column = Int32Array.from({ length: nodes }, (_, node) =>
    nodeLevel[node] ? -1 : (columnAt.get(nodeX[node]) ?? -1),
  );
  const parent = Int32Array.from({ length: nodes }, (_, node) => node);
  const rootOf = (node: number): number => {
    let root = node;
    while (parent[root] !== root) {
      parent[root] = parent[parent[root]];
      root = parent[root];
    }
    return root;
  };
  const join = (one: number, other: number): void => {
    const [a, b] = [rootOf(one), rootOf(other)];
    parent[Math.max(a, b)] = Math.min(a, b);
  };
  const host = new Int32Array(columnX.length).fill(-1);
  for (const node of hosts)
    if (host[column[node]] < 0) host[column[node]] = node;
    else join(host[column[node]], node);
  // Links from lower levels join a level's blocks. Links within a level join only the blocks of the next level, because
  // in a Dragonfly+, links within the top level join different groups.
  const linksUpTo: number[][] = [];
  for (let link = 0; link < links; link++) {
    const [one, other] = [nodeLevel[endNode[2 * link]], nodeLevel[endNode[2 * link + 1]]];
    const level = one === other ? one + 1 : Math.max(one, other);
    linksUpTo[level] ??= [];
    linksUpTo[level].push(link);
  }
  let highest = 0;
  for (let node = 0; node < nodes; node++) highest = Math.max(highest, nodeLevel[node]);
  const block: Int32Array[] = [];
  for (let level = 0; level <= Math.max(highest, linksUpTo.length - 1); level++) {
    for (const link of linksUpTo[level] ?? []) join(endNode[2 * link], endNode[2 * link + 1]);
    block.push(Int32Array.from({ length: nodes }, (_, node) => rootOf(node)));
  }
  return { column, columnX, host, block };
}

/** Return the nodes of each group, ascending; no groups if no node has traffic. Some nodes are in no group. */
export function findIdleGroups(
  model: Model,
  { block, column }: BlockTree,
  used: Uint8Array,
  isLeftOut: (node: number) => boolean = () => false,
): number[][] {
  const { nodeX, nodeY, nodeLevel } = model;
  if (!used.includes(1)) return [];
  const groups: number[][] = [];
  /** Fold each series of adjacent parts (sets of nodes) without traffic into one group. */
  const foldRuns = (parts: number[][]): void => {
    let run: number[][] = [];
    const end = (): void => {
      const nodes = run.flat().sort((one, other) => one - other);
      const hosts = new Set(nodes.filter((node) => column[node] >= 0).map((node) => column[node])).size;
      if ((hosts || run.length) >= FEWEST) groups.push(nodes);
      run = [];
    };
    for (const part of parts) {
      if (part.some((node) => used[node])) end();
      else run.push(part);
    }
    end();
  };
  const visit = (nodes: number[], level: number): void => {
    // Fold the switches of this level in each row, then the blocks of the level below.
    const rows = partition(
      nodes.filter((node) => level && nodeLevel[node] === level),
      (node) => nodeY[node],
    );
    for (const row of rows) foldRuns(row.sort((one, other) => nodeX[one] - nodeX[other]).map((node) => [node]));
    if (!level) return;
    const below = partition(
      nodes.filter((node) => nodeLevel[node] < level),
      (node) => block[level - 1][node],
    );
    visitParts(below, level - 1);
  };
  const visitParts = (parts: number[][], level: number): void => {
    const leftOf = new Map(
      parts.map((part) => [part, part.reduce((least, node) => Math.min(least, nodeX[node]), 1e300)]),
    );
    parts.sort((one, other) => (leftOf.get(one) ?? 0) - (leftOf.get(other) ?? 0));
    foldRuns(parts);
    for (const part of parts) if (part.some((node) => used[node])) visit(part, level);
  };
  const all = Array.from({ length: model.nodes }, (_, node) => node).filter((node) => !isLeftOut(node));
  visitParts(
    partition(all, (node) => block[block.length - 1][node]),
    block.length - 1,
  );
  return groups;
}

function partition(nodes: number[], keyOf: (node: number) => number): number[][] {
  const parts = new Map<number, number[]>();
  for (const node of nodes) {
    const part = parts.get(keyOf(node));
    if (part) part.push(node);
    else parts.set(keyOf(node), [node]);
  }
  return [...parts.values()];
}
