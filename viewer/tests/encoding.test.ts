// SPDX-License-Identifier: Apache-2.0
// Visual encodings on the small fabric: which link directions are drawn, in which colours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Amounts } from "../src/data/amounts";
import { findSimplex, formatLinkValue } from "../src/data/link_values";
import { BYTES } from "../src/data/measure";
import {
  encodeChanges,
  encodeLoads,
  encodeValue,
  findValue,
  formatAmount,
  HIDDEN,
  IDLE,
} from "../src/pictures/encoding";
import { STEPS, THEMES } from "../src/pictures/palette";
import type { State } from "../src/state";
import { makeFlows, makeRun } from "./small_fabric";

const RUN = makeRun({
  flows: makeFlows([
    { from: 0, to: 1, bytes: 63 },
    { from: 0, to: 2, bytes: 21 },
  ]),
});

function encode(state: State): { steps: number[]; first: number[] } {
  const { steps, ranking } = encodeLoads(RUN, state, THEMES.light, RUN.table.loadOfEnds(state));
  return { steps: [...steps], first: ranking.first };
}

test("loads get colours on a linear scale, unused links none", () => {
  const { steps, first } = encode({});
  // Link direction 0 has 84 bytes, 3 has 63, the route to host 2 has 21: a quarter of 63 colours.
  assert.deepEqual(steps, [STEPS, 0, 0, 1 + Math.round(0.75 * 63), 0, 17, 0, 0, 17, 0, 0, 17]);
  // Among equals, those between switches first.
  assert.deepEqual(first, [0, 3, 8, 11, 5]);
});

test("filters hide, ranges make idle, used hides what is idle", () => {
  const upper = encode({ level: 2 }).steps;
  assert.deepEqual(upper.slice(0, 8), new Array(8).fill(HIDDEN));
  assert.deepEqual(upper.slice(8), [STEPS, IDLE, IDLE, STEPS]);
  assert.equal(encode({ load: [60, 70] }).steps[0], IDLE);
  assert.equal(encode({ load: [60, 70], used: true }).steps[0], HIDDEN);
  assert.deepEqual(encode({ load: [60, 70] }).first, [3]);
});

test("routes of a pair without traffic are listed apart", () => {
  const state = { source: 3, destination: 2 };
  const { unusedRoutes } = encodeLoads(RUN, state, THEMES.light, RUN.table.loadOfEnds(state));
  assert.deepEqual(unusedRoutes, [6, 5]);
});

test("changes are coloured about the middle, unknown ones are idle", () => {
  const change = new Amounts(12);
  change.add(0, -40, 0);
  change.add(3, 20, 0);
  const encoding = encodeChanges(RUN, {}, THEMES.light, change, BYTES, (end) => end < 5);
  const middle = 1 + Math.round(0.5 * 63);
  assert.deepEqual([...encoding.steps].slice(0, 6), [1, middle, middle, 1 + Math.round(0.75 * 63), middle, IDLE]);
  assert.deepEqual(encoding.ranking.first.slice(0, 2), [0, 3]);
  assert.equal(formatAmount(encoding, -40), "−40 B");
});

test("a property of links colours both directions, and lists a link once unless they differ", () => {
  const value = Float64Array.of(1, 1, 2, 4, Number.NaN, 3, Number.NaN, Number.NaN, 5, 5, 5, 5);
  const delay = { name: "delay", unit: "s", value };
  const run = makeRun({ linkValues: [delay] });
  const encoding = encodeValue(run, {}, THEMES.light, run.table.loadOfEnds({}), delay);
  assert.deepEqual(encoding.ranking.first, [8, 10, 3, 5, 2, 0]);
  assert.equal(encoding.steps[6], IDLE);
  assert.equal(formatAmount(encoding, 0.002), "2 ms");
  assert.equal(formatLinkValue(delay, 1), "2 s, back 4 s");
  assert.equal(formatLinkValue(delay, 2), "3 s");
  assert.equal(formatLinkValue(delay, 3), "–");
  assert.deepEqual([...findSimplex([delay], 6)], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(findValue(run.model, {}), null);
  assert.equal(findValue(run.model, { value: 0 }), delay);
  assert.equal(findValue(makeRun({ linkValues: [delay] }, { about: "inferred" }).model, {}), delay);
});
