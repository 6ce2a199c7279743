// SPDX-License-Identifier: Apache-2.0
// Visual encodings on the small fabric: the drawn link directions and their colours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Amounts } from "../src/data/amounts";
import { findSimplex, formatLinkValue, formatValue } from "../src/data/link_values";
import { BYTES, SHARES, TIMES } from "../src/data/measure";
import {
  colouringEnd,
  encodeChanges,
  encodeLoads,
  encodeValue,
  findValue,
  formatAmount,
  HIDDEN,
  IDLE,
  isNodeShown,
  selectedNodes,
  selectsEndpoints,
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
  // Link direction 0 has 84 bytes, 3 has 63 bytes. Directions on the route to host 2 have 21: a quarter of 63 colours.
  assert.deepEqual(steps, [STEPS, 0, 0, 1 + Math.round(0.75 * 63), 0, 17, 0, 0, 17, 0, 0, 17]);
  // If loads are equal, a host's own link comes first.
  assert.deepEqual(first, [0, 3, 5, 8, 11]);
  const { groups } = encodeLoads(RUN, {}, THEMES.light, RUN.table.loadOfEnds({}));
  // 63 and 84 bytes are not alike. The directions between switches have equal times, but one leads up, one down.
  assert.deepEqual(
    groups.map(({ end, count }) => [end, count]),
    [
      [0, 1],
      [3, 1],
      [5, 1],
    ],
  );
});

test("filters hide, ranges make idle, used hides what is idle", () => {
  const upper = encode({ level: 2 }).steps;
  assert.deepEqual(upper.slice(0, 8), new Array(8).fill(HIDDEN));
  assert.deepEqual(upper.slice(8), [STEPS, IDLE, IDLE, STEPS]);
  assert.equal(encode({ load: [60, 70] }).steps[0], IDLE);
  assert.equal(encode({ load: [60, 70], used: true }).steps[0], HIDDEN);
  assert.deepEqual(encode({ load: [60, 70] }).first, [3]);
});

test("a range of loads includes both its ends", () => {
  const { first } = encode({ load: [21, 63] });
  assert.deepEqual(first, [3, 5, 8, 11]);
});

test("colours are by the measure, others share their scale", () => {
  const run = makeRun({ flows: RUN.model.flows }, { bytes_routed: "100" });
  const loads = run.table.loadOfEnds({});
  assert.equal(encodeLoads(run, {}, THEMES.light, loads, SHARES).scale.most, 840_000_000_000);
  const other = new Amounts(12);
  other.add(7, 500, 0);
  const { scale, steps } = encodeLoads(run, {}, THEMES.light, loads, BYTES, [other]);
  assert.deepEqual([scale.least, scale.most, steps[7]], [21, 500, IDLE]);
});

test("emphasis is time at line rate, on one scale with the other run", () => {
  // Link 0 is twice as fast as link 1. The speed of link 5 is unknown, so link 5 counts as fast as the fastest link.
  const linkGbps = Float64Array.of(200, 100, 100, 100, 100, Number.NaN);
  const run = makeRun({ linkGbps, flows: RUN.model.flows });
  const loads = run.table.loadOfEnds({});
  const { emphasis, ranking } = encodeLoads(run, {}, THEMES.light, loads);
  assert.deepEqual(ranking.first.slice(0, 2), [3, 0]);
  // 84 B at 200 Gb/s, 63 B at 100 Gb/s, 21 B at 100 and at unknown speed.
  assert.deepEqual(
    [emphasis[0], emphasis[3], emphasis[8], emphasis[11]],
    [42, 63, 21, 10.5].map((each) => Math.round(each)),
  );
  assert.equal(emphasis[2], 0);
  const other = new Amounts(12);
  other.add(3, 126, 0);
  assert.equal(encodeLoads(run, {}, THEMES.light, loads, BYTES, [other]).emphasis[3], Math.round(63 / 2));
  // Colours by time: the slow link has the last colour, not the link with most bytes. The scale is in seconds.
  const timed = encodeLoads(run, {}, THEMES.light, loads, TIMES);
  assert.deepEqual([timed.steps[0], timed.steps[3], timed.steps[11]], [43, STEPS, 1 + Math.round(10.5)]);
  assert.equal(formatAmount(timed, timed.scale.most), "5.04 ns");
  assert.deepEqual(timed.emphasis, emphasis);
  // A logarithmic scale of colours does not change the times.
  assert.deepEqual(encodeLoads(run, { log: true }, THEMES.light, loads).emphasis, emphasis);
});

test("emphasis of changes is by their size", () => {
  const change = new Amounts(12);
  change.add(0, -40, 0);
  change.add(3, 20, 0);
  const { emphasis } = encodeChanges(RUN, {}, THEMES.light, change, BYTES, () => true);
  assert.deepEqual([emphasis[0], emphasis[3], emphasis[1]], [63, Math.round(63 / 2), 0]);
});

test("the filter by rail hides the link directions and nodes of other rails", () => {
  const rail = { name: "rail", has_levels: true };
  // Hosts 2 and 3 with their leaf are on the second rail.
  const run = makeRun(
    { flows: RUN.model.flows, nodeRail: Uint8Array.of(0, 0, 1, 1, 0, 1, 0) },
    { rails: [rail, rail] },
  );
  const encoding = encodeLoads(run, { rail: 1 }, THEMES.light, run.table.loadOfEnds({}));
  const shown = Array.from(encoding.steps.keys()).filter((end) => encoding.steps[end] !== HIDDEN);
  assert.deepEqual(shown, [4, 5, 6, 7, 10]);
  // The scale does not include the 84 bytes on the other rail.
  assert.equal(encoding.scale.most, 21);
  assert.deepEqual([isNodeShown(encoding, 2), isNodeShown(encoding, 0)], [true, false]);
  assert.equal(isNodeShown({ ...encoding, state: {} }, 0), true);
});

test("without traffic a scale has no range", () => {
  const { scale, ranking } = encodeLoads(RUN, { log: true }, THEMES.light, new Amounts(12));
  assert.deepEqual([scale.least, scale.most, scale.ends], [0, 0, [0, 0]]);
  assert.equal(ranking.used, 0);
});

test("every encoding can be logarithmic", () => {
  const value = { name: "delay", unit: "s", value: new Float64Array(12).fill(1) };
  const loads = RUN.table.loadOfEnds({});
  for (const log of [true, false]) {
    assert.equal(encodeLoads(RUN, { log }, THEMES.light, loads).scale.logarithmic, log);
    assert.equal(encodeValue(RUN, { log }, THEMES.light, loads, value).scale.logarithmic, log);
    assert.equal(encodeChanges(RUN, { log }, THEMES.light, loads, BYTES, () => true).scale.logarithmic, log);
  }
});

test("what is selected", () => {
  const state = { from: 0, to: 2, hosts: [3], node: 6 };
  const encoding = encodeLoads(RUN, state, THEMES.light, RUN.table.loadOfEnds({}));
  assert.deepEqual([...selectedNodes(encoding)], [0, 2, 3, 6]);
  assert.deepEqual([...selectedNodes({ ...encoding, state: {} })], []);
  const senders = [{ ranks: [0] }, { hosts: [1] }, { source: 0 }, { from: 0 }];
  const receivers = [{ destination: 0 }, { to: 0 }];
  for (const part of [...senders, ...receivers, { end: 0 }, { node: 0 }]) assert.equal(selectsEndpoints(part), true);
  assert.equal(selectsEndpoints({ region: 0, time: [0, 1] }), false);
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
  const less = encodeChanges(RUN, { change: [-50, 10] }, THEMES.light, change, BYTES, () => true);
  assert.deepEqual(less.ranking.first, [0]);
  assert.equal(less.steps[3], IDLE);
});

test("a property of links colours both directions, and lists a link once unless they differ", () => {
  const value = Float64Array.of(1, 1, 2, 4, Number.NaN, 3, Number.NaN, Number.NaN, 5, 5, 5, 5);
  const delay = { name: "delay", unit: "s", value };
  const run = makeRun({ linkValues: [delay] });
  const encoding = encodeValue(run, {}, THEMES.light, run.table.loadOfEnds({}), delay);
  assert.deepEqual(encoding.ranking, { first: [8, 10, 3, 5, 2, 0], used: 6, least: 1, most: 5 });
  // Hidden links do not extend the scale, and values above the selected range are hidden too.
  const lower = encodeValue(run, { level: 1, load: [2, 3] }, THEMES.light, run.table.loadOfEnds({}), delay);
  assert.deepEqual([lower.scale.least, lower.scale.most], [1, 4]);
  assert.deepEqual(lower.ranking.first, [5, 2]);
  assert.equal(encoding.steps[6], IDLE);
  assert.equal(formatAmount(encoding, 0.002), "2 ms");
  assert.equal(formatLinkValue(delay, 1), "2 s, back 4 s");
  assert.equal(formatLinkValue(delay, 2), "3 s");
  assert.equal(formatLinkValue(delay, 3), "–");
  assert.equal(formatValue({ ...delay, unit: "Gb/s" }, 25), "25 Gb/s");
  assert.equal(formatValue({ ...delay, unit: "" }, 0.12345), "0.123");
  // The speed, a second property, is known in both directions.
  const speed = { name: "speed", unit: "Gb/s", value: new Float64Array(12).fill(100) };
  assert.deepEqual([...findSimplex([delay, speed], 6)], new Array(12).fill(0));
  assert.deepEqual([...findSimplex([delay], 6)], [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(findValue(run.model, {}), null);
  assert.equal(findValue(run.model, { value: 0 }), delay);
  assert.equal(findValue(makeRun({ linkValues: [delay] }, { about: "inferred" }).model, {}), delay);
});

test("a link has the colour of its busier direction, and its halves their own with selected senders", () => {
  const encoding = encodeLoads(RUN, {}, THEMES.light, RUN.table.loadOfEnds({}));
  for (let end = 0; end < encoding.steps.length; end++) {
    const painted = encoding.steps[colouringEnd(encoding, end)];
    assert.equal(painted, Math.max(encoding.steps[end], encoding.steps[end ^ 1]));
    assert.equal(painted, encoding.steps[colouringEnd(encoding, end ^ 1)]);
    assert.equal(colouringEnd({ ...encoding, state: { ranks: [0] } }, end), end);
  }
});
