// SPDX-License-Identifier: Apache-2.0
// The picture of lines for other fabrics than the small fat-tree: parallel links, links within a level, planes, rails.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Header, Model } from "../src/data/model";
import { layOutNodes } from "../src/pictures/line_layout";
import { makeModel } from "./small_fabric";

/** Height of a level of the small fabric, which is 3 units wide and has levels 0 to 2. */
const STEP = (3 * 0.62) / 2;
const RAIL = { name: "rail", has_levels: true };
const PLANE = { name: "plane", has_levels: false };

function near(value: number, expected: number): void {
  assert.ok(Math.abs(value - expected) < 1e-6, `${value} is not ${expected}`);
}

/** The small fabric with links 4 and 5 between the given nodes. */
function connect(ends: number[], changes: Partial<Model> = {}, header: Partial<Header> = {}): Model {
  return makeModel({ endNode: Uint32Array.of(0, 4, 1, 4, 2, 5, 3, 5, ...ends), ...changes }, header);
}

test("parallel links fan out sideways, whichever of their ends comes first", () => {
  const { middleX, middleY } = layOutNodes(connect([4, 6, 6, 4]));
  near(middleX[4], 1 - 0.012);
  near(middleX[5], 1 + 0.012);
  near(middleY[4], STEP / 2);
});

test("the first link of all fans out too", () => {
  const { middleX } = layOutNodes(makeModel({ endNode: Uint32Array.of(4, 6, 4, 6, 0, 4, 1, 4, 2, 5, 3, 5) }));
  near(middleX[0], 1 - 0.012);
  near(middleX[1], 1 + 0.012);
});

test("many parallel links stay within their part of the row", () => {
  const links = 204;
  const endNode = new Uint32Array(2 * links);
  for (let link = 0; link < links; link++) endNode.set([4, 6], 2 * link);
  const { middleX } = layOutNodes(makeModel({ links, endNode }));
  // Two switches are on the fullest level: 0.4 of half the width to either side.
  near(middleX[0], 1 - 0.6);
  near(middleX[links - 1], 1 + 0.6);
});

test("parallel links within a level fan out upwards and downwards", () => {
  const { middleX, middleY } = layOutNodes(connect([4, 5, 5, 4]));
  assert.deepEqual([middleX[4], middleX[5]], [1.5, 1.5]);
  near(middleY[4], STEP - 0.34 * STEP);
  near(middleY[5], STEP + 0.34 * STEP);
});

test("what is above the first row moves all rows down", () => {
  const nodeY = Float32Array.of(0, 0, 0, 0, 1, 1, 1);
  const { y, middleY, height } = layOutNodes(connect([4, 5, 5, 4], { nodeY }));
  const step = 3 * 0.62;
  near(Math.min(...middleY), 0);
  near(y[4], 0.34 * step);
  near(y[0], 1.34 * step);
  near(height, 1.34 * step);
});

test("a plane keeps its proportions within limits, and its rows have no names", () => {
  const tall = { nodeY: Float32Array.of(0, 0, 0, 0, 10, 10, 20) };
  // With levels, the distance of rows would be 3 * 0.62 / 20.
  near(layOutNodes(makeModel(tall)).y[0], 3 * 0.62);
  const plane = layOutNodes(makeModel(tall, { rails: [PLANE] }));
  near(plane.y[0], 20 * 0.2);
  assert.deepEqual(plane.rows, []);
  // If one rail has no levels, the whole picture is drawn without levels.
  near(layOutNodes(makeModel(tall, { rails: [RAIL, PLANE] })).y[0], 20 * 0.2);
});

test("each row has the level of each rail in it", () => {
  const nodeRail = Uint8Array.of(0, 0, 1, 1, 0, 1, 1);
  const namesOf = (rails: Header["rails"]): string[] =>
    layOutNodes(makeModel({ nodeRail }, { rails })).rows.map(({ name }) => name);
  assert.deepEqual(namesOf([RAIL, RAIL]), ["level 2b", "1a 1b", "hosts"]);
  assert.deepEqual(namesOf([RAIL, PLANE]), ["level 1a", "hosts"]);
  // Letters of more than two rails do not fit next to a row.
  const rails = { nodeRail: Uint8Array.of(0, 1, 2, 3, 0, 1, 4), nodeLevel: Uint8Array.of(1, 1, 1, 1, 2, 2, 3) };
  const { rows } = layOutNodes(makeModel(rails, { rails: new Array(5).fill(RAIL) }));
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["level 3e", "2a 2b", "level 1"],
  );
});
