// SPDX-License-Identifier: Apache-2.0
// Colours of attributes of ranks and nodes, and the jobs of nodes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attribute } from "../src/data/attributes";
import { AttributeColours, NodeColours } from "../src/pictures/attribute_colours";
import { findNodeJobs } from "../src/pictures/node_jobs";
import { STEPS, THEMES } from "../src/pictures/palette";
import { makeFlows, makeModel, makeRun } from "./small_fabric";

const { light } = THEMES;

function attribute(of: "rank" | "node", value: number[], classes: string[] = []): Attribute {
  return { name: "attribute", of, classes, value: Float64Array.from(value) };
}

test("classes take the colours in turn", () => {
  const names = Array.from({ length: 9 }, (_, at) => `class ${at}`);
  const colours = new AttributeColours(attribute("rank", [0, 8, Number.NaN], names));
  assert.equal(colours.of(0, light), light.jobs[0]);
  assert.equal(colours.of(1, light), light.jobs[1]);
  assert.equal(colours.of(2, light), undefined);
  assert.equal(colours.of(3, light), undefined);
});

test("numbers take colours by their size", () => {
  const colours = new AttributeColours(attribute("node", [10, 30, 20, Number.NaN]));
  assert.deepEqual([colours.of(0, light), colours.of(1, light)], [light.values[0], light.values[STEPS - 1]]);
  assert.equal(colours.of(2, light), light.values[32]);
  assert.equal(colours.of(3, light), undefined);
  // A single number has the strongest colour.
  assert.equal(new AttributeColours(attribute("node", [7])).of(0, light), light.values[STEPS - 1]);
  assert.equal(new AttributeColours(attribute("node", [Number.NaN])).of(0, light), undefined);
});

test("a node has its own colour, or that of its first rank", () => {
  const rail = { name: "rail", has_levels: true };
  const ofRanks = attribute("rank", [0, 1, 2, 3], ["a", "b", "c", "d"]);
  const ofNodes = attribute("node", [3, 2, 1, 0, 0, 0, 0], ["a", "b", "c", "d"]);
  // There are two rails. Ranks 1 and 2 are on node 1 of the first rail, rank 1 on node 3 of the second rail.
  const rankNode = Int32Array.of(0, 2, 1, 3, 1, -1, -1, -1);
  const model = makeModel({ attributes: [ofRanks, ofNodes], rankNode }, { rails: [rail, rail] });
  const colours = new NodeColours(model);
  const indices = [0, 1, 2, 3].map((node) => light.jobs.indexOf(colours.of(0, node, light) ?? ""));
  assert.deepEqual(indices, [0, 1, 0, 1]);
  assert.equal(colours.of(0, 4, light), undefined);
  assert.equal(colours.of(1, 0, light), light.jobs[3]);
});

const UNRANKED = { sourceRank: Int32Array.of(-1, -1, -1), destinationRank: Int32Array.of(-1, -1, -1) };

test("of several jobs a node has the first that it sends or receives in", () => {
  const flows = { ...makeFlows(), job: Int32Array.of(1, 0, 2) };
  const jobs = findNodeJobs(makeRun({ flows }, { jobs: ["a", "b", "c"] }));
  assert.deepEqual([...jobs].sort(), [
    [0, 1],
    [1, 1],
    [2, 0],
    [3, 2],
  ]);
});

test("where ranks are unknown, the job's nodes are those that send or receive", () => {
  const flows = { ...makeFlows([{ from: 0, to: 1, bytes: 5 }]), ...UNRANKED };
  const jobs = findNodeJobs(makeRun({ flows, rankNode: new Int32Array(0) }));
  assert.deepEqual(
    [...jobs],
    [
      [0, 0],
      [1, 0],
    ],
  );
});
