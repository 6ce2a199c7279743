// SPDX-License-Identifier: Apache-2.0
// Items of a row are moved apart as little as possible.
import assert from "node:assert/strict";
import { test } from "node:test";
import { separate } from "../src/pictures/row_spacing";

test("items that are far enough apart stay", () => {
  assert.deepEqual(separate([1, 4, 9], [0, 2, 2], 10), [1, 4, 9]);
  assert.deepEqual(separate([], [], 10), []);
});

test("items on one another move apart evenly, and push the next", () => {
  assert.deepEqual(separate([5, 5], [0, 2], 10), [4, 6]);
  assert.deepEqual(separate([2, 5, 5, 6], [0, 2, 2, 2], 20), [1.5, 3.5, 5.5, 7.5]);
});

test("items stay within the width, and where there is no space for all they stay where they are", () => {
  assert.deepEqual(separate([0, 0, 0], [0, 1, 1], 9), [0, 1, 2]);
  assert.deepEqual(separate([9, 9], [0, 1], 9), [8, 9]);
  assert.deepEqual(separate([1, 1, 1], [0, 5, 5], 9), [1, 1, 1]);
});
