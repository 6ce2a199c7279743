// SPDX-License-Identifier: Apache-2.0
// The picture of cells for other fabrics than the small fat-tree: order in blocks, folds, rails, links within a level.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Model } from "../src/data/model";
import { CellLayout } from "../src/pictures/cell_layout";
import { makeModel } from "./small_fabric";

function connect(ends: number[], changes: Partial<Model> = {}): Model {
  return makeModel({ endNode: Uint32Array.of(0, 4, 1, 4, 2, 5, 3, 5, ...ends), ...changes });
}

test("few columns get no wider than a part of the picture", () => {
  const { cellWidth, cellHeight } = new CellLayout(makeModel());
  assert.ok(Math.abs(cellWidth[0] - 1000 / 24) < 1e-4);
  assert.equal(cellHeight, 26);
});

test("a block is named by its levels and by what its columns are", () => {
  const { blocks } = new CellLayout(makeModel());
  assert.deepEqual(
    blocks.map(({ name }) => name),
    [
      "level 1 → level 2, a column for each switch of level 1",
      "level 2 → level 1, a column for each switch of level 1",
      "hosts → level 1, a column for each switch of level 1",
      "level 1 → hosts, a column for each switch of level 1",
    ],
  );
});

test("columns and the cells in them are from left to right as the nodes are", () => {
  // Leaf 1 is to the left of leaf 0, and host 1 to the left of host 0.
  const nodeX = Float32Array.of(4, 3, 2, 1, 3.5, 1.5, 2.5);
  const { x, y } = new CellLayout(makeModel({ nodeX }));
  assert.ok(x[4] < x[0]);
  assert.ok(y[2] < y[0]);
  assert.equal(x[2], x[0]);
});

test("parallel links are in the order of their ports", () => {
  const endPort = Uint8Array.of(1, 1, 1, 2, 1, 1, 1, 2, 9, 1, 7, 2);
  const { y } = new CellLayout(connect([4, 6, 4, 6], { endPort }));
  assert.ok(y[10] < y[8]);
});

test("links within a level have a column for each transmitting node", () => {
  const switches = new CellLayout(connect([4, 5, 4, 5]));
  assert.deepEqual(switches.blocks.map(({ name, short, columns, rows }) => [name, short, columns, rows])[0], [
    "within level 1, by transmitting switch",
    "1",
    2,
    2,
  ]);
  // Leaf 0 transmits on link directions 8 and 10, leaf 1 on 9 and 11.
  assert.deepEqual([switches.x[8], switches.x[9]], [switches.x[10], switches.x[11]]);
  assert.ok(switches.x[8] < switches.x[9]);
  const hosts = new CellLayout(connect([0, 1, 0, 2]));
  const within = hosts.blocks.find(({ name }) => name.startsWith("within"));
  assert.equal(within?.name, "within hosts, by transmitting switch");
  // Host 0 transmits on 8 and 10, host 1 on 9, host 2 on 11.
  assert.deepEqual([within?.columns, within?.rows], [3, 2]);
  assert.equal(hosts.x[8], hosts.x[10]);
});

test("of blocks with one upper level the one with the higher lower level is first", () => {
  // Link 5 joins host 3 to the spine.
  const { blocks } = new CellLayout(connect([4, 6, 3, 6]));
  assert.deepEqual(
    blocks.map(({ short }) => short),
    ["1 → 2", "2 → 1", "0 → 2", "2 → 0", "0 → 1", "1 → 0"],
  );
});

test("rails follow one another", () => {
  const rail = { name: "rail", has_levels: true };
  const model = makeModel({ nodeRail: Uint8Array.of(1, 1, 0, 0, 1, 0, 0) }, { rails: [rail, rail] });
  assert.deepEqual(
    new CellLayout(model).blocks.map(({ short }) => short),
    ["1a → 2a", "2a → 1a", "0 → 1a", "1a → 0", "1b → 2b", "0 → 1b", "1b → 0"],
  );
});

test("a block of more than 1,000 columns is folded", () => {
  const [leaves, links] = [1501, 3002];
  // Node 0 is the spine; each leaf has two successive links to the spine.
  const model = makeModel({
    nodes: leaves + 1,
    links,
    nodeKind: new Uint8Array(leaves + 1).fill(1),
    nodeRail: new Uint8Array(leaves + 1),
    nodeLevel: Int32Array.from({ length: leaves + 1 }, (_, node) => (node ? 1 : 2)),
    nodeX: Float32Array.from({ length: leaves + 1 }, (_, node) => node),
    endNode: Uint32Array.from({ length: 2 * links }, (_, end) => (end & 1 ? 0 : 1 + (end >> 2))),
    endPort: Uint8Array.from({ length: 2 * links }, (_, end) => 1 + ((end >> 1) & 1)),
  });
  const { blocks, x, y, cellHeight } = new CellLayout(model);
  assert.deepEqual([blocks[0].columns, blocks[0].rows, blocks[0].folds], [751, 2, 2]);
  // Leaf 751 is below leaf 0, and leaf 752 is next to leaf 751.
  assert.deepEqual([x[4 * 751], y[4 * 751] - y[0]], [x[0], 2 * cellHeight]);
  assert.equal(x[4 * 752], x[4]);
  const cells = new Set(Array.from(x, (left, end) => `${left} ${y[end]}`));
  assert.equal(cells.size, 2 * links);
});

test("many rows are lower, so that all blocks fit", () => {
  const hosts = 100;
  // Node 0 is the only switch.
  const model = makeModel({
    nodes: hosts + 1,
    links: hosts,
    nodeRail: new Uint8Array(hosts + 1),
    nodeLevel: Int32Array.from({ length: hosts + 1 }, (_, node) => (node ? 0 : 1)),
    nodeX: Float32Array.from({ length: hosts + 1 }, (_, node) => node),
    endNode: Uint32Array.from({ length: 2 * hosts }, (_, end) => (end & 1 ? 0 : 1 + (end >> 1))),
    endPort: new Uint8Array(2 * hosts).fill(1),
  });
  const { y, cellHeight, height } = new CellLayout(model);
  assert.ok(Math.max(...y) + cellHeight <= height + 1e-3);
  assert.ok(cellHeight > 2);
});
