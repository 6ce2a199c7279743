// SPDX-License-Identifier: Apache-2.0
// Placement of the tooltip, on a picture of 400 x 300 pixels.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Box, crossesBox, placeTooltip } from "../src/widgets/tooltip_placement";

const PICTURE = { width: 400, height: 300 };
const TOOLTIP = { width: 100, height: 50 };

function placeAt(x: number, y: number, avoid: Box = [x, y, x, y]): [number, number] {
  return placeTooltip([x, y], avoid, TOOLTIP, PICTURE);
}

test("a tooltip is right of and below the pointer, if it fits there", () => {
  assert.deepEqual(placeAt(100, 100), [114, 114]);
  assert.deepEqual(placeAt(350, 100), [350 - 14 - 100, 114]);
  assert.deepEqual(placeAt(100, 280), [114, 280 - 14 - 50]);
  assert.deepEqual(placeAt(350, 280), [350 - 114, 280 - 64]);
});

test("a tooltip keeps off the line of its link", () => {
  // The line leads down to the right, through the first candidate.
  assert.deepEqual(placeAt(100, 100, [100, 100, 300, 300]), [114, 36]);
});

test("a tooltip that fits in corners alone is in one where the pointer is not", () => {
  const wide = { width: 380, height: 140 };
  // The line of the link is at the lower right.
  assert.deepEqual(placeTooltip([200, 20], [395, 299, 399, 299], wide, PICTURE), [4, 156]);
});

test("a tooltip that fits nowhere is in the half of the picture without the pointer", () => {
  const [large, low] = [
    { width: 390, height: 150 },
    { width: 400, height: 200 },
  ];
  assert.deepEqual(placeTooltip([200, 60], [200, 60, 200, 60], large, low), [6, 46]);
  assert.deepEqual(placeTooltip([200, 190], [200, 190, 200, 190], large, low), [6, 4]);
});

test("a picture that is too small gets the tooltip at an edge", () => {
  assert.deepEqual(placeTooltip([10, 10], [10, 10, 10, 10], TOOLTIP, { width: 90, height: 40 }), [4, 4]);
});

test("lines and boxes", () => {
  const box: Box = [10, 10, 20, 20];
  assert.equal(crossesBox([0, 0, 30, 30], box), true);
  assert.equal(crossesBox([0, 0, 9, 9], box), false);
  assert.equal(crossesBox([0, 15, 30, 15], box), true);
  assert.equal(crossesBox([0, 25, 30, 25], box), false);
  assert.equal(crossesBox([12, 12, 13, 13], box), true);
  assert.equal(crossesBox([0, 19, 11, 31], box), false);
  assert.equal(crossesBox([15, 15, 15, 15], box), true);
});
