// SPDX-License-Identifier: Apache-2.0
// Layouts of the pictures of lines and of cells on the small fabric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CellLayout } from "../src/pictures/cell_layout";
import { layOutNodes } from "../src/pictures/line_layout";
import { makeModel } from "./small_fabric";

test("rows are levels from the bottom up, x is kept", () => {
  const { x, y, rows, width, height } = layOutNodes(makeModel());
  assert.deepEqual([...x], [0, 1, 2, 3, 0.5, 2.5, 1.5]);
  // 3 units wide, height 0.62 of it, over two levels.
  const step = (3 * 0.62) / 2;
  assert.deepEqual(
    [...y],
    [2, 2, 2, 2, 1, 1, 0].map((row) => row * step),
  );
  assert.deepEqual([width, height], [3, 2 * step]);
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["level 2", "level 1", "hosts"],
  );
});

test("a single link has its middle between its nodes, parallel links fan out", () => {
  const { middleX, middleY } = layOutNodes(makeModel());
  assert.deepEqual([middleX[0], middleY[0]], [0.25, (3 * 0.62 * 1.5) / 2]);
  // Link 5 in parallel with link 4.
  const endNode = Uint32Array.of(0, 4, 1, 4, 2, 5, 3, 5, 4, 6, 4, 6);
  const fanned = layOutNodes(makeModel({ endNode })).middleX;
  assert.ok(fanned[4] < 1 && fanned[5] > 1);
  assert.ok(Math.abs(fanned[4] + fanned[5] - 2) < 1e-9);
});

test("an empty fabric has a layout", () => {
  const none = { nodes: 0, links: 0, nodeX: new Float32Array(0), nodeY: new Float32Array(0) };
  assert.deepEqual(layOutNodes(makeModel(none)).rows, []);
});

test("every link direction has one cell, and no two overlap", () => {
  const { x, y, cellWidth, cellHeight, order, width, height } = new CellLayout(makeModel());
  assert.deepEqual(
    [...order].sort((one, other) => one - other),
    Array.from({ length: 12 }, (_, end) => end),
  );
  const cells = new Set(Array.from(x, (left, end) => `${left} ${y[end]}`));
  assert.equal(cells.size, 12);
  for (let end = 0; end < 12; end++) {
    assert.ok(x[end] >= 0 && x[end] + cellWidth[end] <= width);
    assert.ok(y[end] >= 0 && y[end] + cellHeight <= height);
  }
});

test("blocks go from the top level down, a column for each switch", () => {
  const { blocks, x } = new CellLayout(makeModel());
  assert.deepEqual(
    blocks.map(({ short }) => short),
    ["1 → 2", "2 → 1", "0 → 1", "1 → 0"],
  );
  assert.deepEqual(
    blocks.map(({ columns, rows }) => [columns, rows]),
    [
      [2, 1],
      [2, 1],
      [2, 2],
      [2, 2],
    ],
  );
  // Hosts 0 and 1 are in the column of leaf 0, hosts 2 and 3 in the column of leaf 1.
  assert.equal(x[0], x[2]);
  assert.equal(x[4], x[6]);
  assert.ok(x[0] < x[4]);
});
