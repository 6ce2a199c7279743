// SPDX-License-Identifier: Apache-2.0
// The half link at a pointer's position.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrawingContext } from "../src/pictures/drawing_context";
import { type Encoding, encodeLoads } from "../src/pictures/encoding";
import { HalfLinks, type LinkPoints } from "../src/pictures/half_links";
import { THEMES } from "../src/pictures/palette";
import type { State } from "../src/state";
import { makeFlows, makeRun } from "./small_fabric";

const RUN = makeRun({ flows: makeFlows([{ from: 0, to: 1, bytes: 8 }]) });

/** Nodes 0 to 3 are at y = 0, leaf 0 at (100, 100), other nodes far away. Middles of links are halfway. */
const POINTS: LinkPoints = {
  x: Float64Array.of(0, 200, 900, 900, 100, 900, 900),
  y: Float64Array.of(0, 0, 900, 900, 100, 900, 900),
  middleX: Float64Array.of(50, 150, 900, 900, 500, 900),
  middleY: Float64Array.of(50, 50, 900, 900, 500, 900),
};
const LINKS = new HalfLinks(RUN.model, POINTS);

function encode(state: State = {}): Encoding {
  return encodeLoads(RUN, state, THEMES.light, RUN.table.loadOfEnds({}));
}

test("a half goes from its node to the middle of its link", () => {
  assert.deepEqual(LINKS.extentOf(0), [0, 0, 50, 50]);
  assert.deepEqual(LINKS.extentOf(3), [100, 100, 150, 50]);
});

test("the nearest half within reach is found", () => {
  // Link direction 0 leads from (0, 0) to (50, 50), 3 from (100, 100) to (150, 50).
  assert.equal(LINKS.find(encode(), 24, 26, 5), 0);
  assert.equal(LINKS.find(encode(), 126, 74, 5), 3);
  assert.equal(LINKS.find(encode(), 30, 60, 5), undefined);
  // Beyond the end of a half link, the distance to the last point counts.
  assert.equal(LINKS.find(encode(), -3, -3, 5), 0);
  assert.equal(LINKS.find(encode(), -4, -4, 5), undefined);
  assert.equal(LINKS.find(encode({ used: true }), 153, 47, 5), 3);
  assert.equal(LINKS.find(encode({ used: true }), 154, 46, 5), undefined);
});

test("a coloured half is preferred to an idle one, a hidden one is not found", () => {
  // At leaf 0 the idle link direction 1 is as near as 3, which has traffic.
  assert.equal(LINKS.find(encode(), 100, 99, 6), 3);
  assert.equal(LINKS.find(encode({ used: true }), 76, 76, 6), undefined);
  assert.equal(LINKS.find(encode(), 76, 76, 6), 1);
});

/** Return the lines that are drawn for unused routes. */
function strokeRoutes(points: LinkPoints, unusedRoutes: number[]): number[][] {
  const lines: number[][] = [];
  let from: number[] = [];
  const context = {
    beginPath: () => {},
    stroke: () => {},
    setLineDash: () => {},
    moveTo: (x: number, y: number) => {
      from = [x, y];
    },
    lineTo: (x: number, y: number) => lines.push([...from, x, y]),
  } as unknown as DrawingContext;
  const encoding = { ...encode(), unusedRoutes };
  new HalfLinks(RUN.model, points).strokeUnusedRoutes(context, encoding, { scale: 1, x: 0, y: 0 });
  return lines;
}

test("a route without traffic reaches the stub that its next node is folded to, and has no part within it", () => {
  assert.deepEqual(strokeRoutes(POINTS, [0]), [[0, 0, 50, 50]]);
  // Link 0 leads to a stub; link 4 joins two nodes of the stub.
  const drawn = Uint8Array.of(0, 1, 1, 1, 0, 1);
  const x = POINTS.x.slice();
  const y = POINTS.y.slice();
  [x[6], y[6]] = [x[4], y[4]];
  const folded = { ...POINTS, x, y, drawn };
  assert.deepEqual(strokeRoutes(folded, [0, 8]), [
    [0, 0, 50, 50],
    [100, 100, 50, 50],
  ]);
});
