// SPDX-License-Identifier: Apache-2.0
// Placement of names on a picture: the names for which there is space.
import assert from "node:assert/strict";
import { test } from "node:test";
import { shorten } from "../src/pictures/drawing";
import { Labels } from "../src/pictures/labels";

test("long names keep both ends", () => {
  assert.equal(shorten("Quantum Mellanox 12345678"), "Quantum Me…anox 12345678");
  assert.equal(shorten("Voltaire 4036 - 36 QDR ports switch (..8098)"), "Voltaire 4…itch (..8098)");
  assert.equal(shorten("twenty-four letters long"), "twenty-four letters long");
});

test("a name takes its area, also across the squares that areas are kept by", () => {
  const labels = new Labels(0, 1000, 1000);
  // Twenty letters are 148 pixels wide.
  assert.equal(labels.reserve("a name of 20 letters", 100, 100), true);
  assert.equal(labels.reserve("a name of 20 letters", 240, 100), false);
  assert.equal(labels.reserve("a name of 20 letters", 249, 100), true);
  assert.equal(labels.reserve("a name of 20 letters", 100, 113), false);
  assert.equal(labels.reserve("a name of 20 letters", 100, 115), true);
});

test("names keep off nodes, and within the picture", () => {
  const labels = new Labels(0, 200, 100);
  labels.block(100, 50, 6);
  assert.equal(labels.reserve("name", 100, 60), false);
  assert.equal(labels.reserve("name", 100, 64), true);
  const outside: [number, number][] = [
    [10, 20],
    [190, 20],
    [100, 5],
    [100, 95],
  ];
  for (const [x, y] of outside) assert.equal(labels.reserve("name", x, y), false);
});
