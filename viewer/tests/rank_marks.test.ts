// SPDX-License-Identifier: Apache-2.0
// The numbers on the most loaded links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { placeMarks } from "../src/pictures/rank_marks";

const VIEW = { scale: 10, x: 100, y: 0 };

test("a number is in the middle of its link direction, in pixels", () => {
  assert.deepEqual(placeMarks([[0, 0, 4, 8]], VIEW), [{ text: "1", x: 120, y: 40 }]);
});

test("numbers of link directions on one another are apart", () => {
  const marks = placeMarks(
    [
      [0, 0, 20, 0],
      [0, 0, 20, 0],
      [0, 1, 20, 1],
    ],
    VIEW,
  );
  assert.deepEqual(
    marks.map(({ text, x }) => [text, x]),
    [
      ["1", 200],
      ["2", 250],
      ["3", 160],
    ],
  );
});

test("where there is no space on a link direction its number is next to it", () => {
  const marks = placeMarks(
    [
      [0, 0, 1, 0],
      [0, 0, 1, 0],
      [0, 0, 1, 0],
    ],
    VIEW,
  );
  for (const one of marks)
    for (const other of marks) assert.ok(one === other || Math.hypot(one.x - other.x, one.y - other.y) > 17);
});
