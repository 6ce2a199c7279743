// SPDX-License-Identifier: Apache-2.0
// The active filters in words, each with the change of the state that removes it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BYTES } from "../src/data/measure";
import { encodeChanges, encodeLoads, encodeValue } from "../src/pictures/encoding";
import { THEMES } from "../src/pictures/palette";
import type { State } from "../src/state";
import { describeFilters } from "../src/widgets/filter_chips";
import { makeRun } from "./small_fabric";

const RUN = makeRun();
const LOADS = RUN.table.loadOfEnds({});

function chipsOf(state: State): [string, State][] {
  return describeFilters(encodeLoads(RUN, state, THEMES.light, LOADS), RUN.names);
}

test("every active filter has a chip that removes it", () => {
  const state = { ranks: [0, 1, 2, 3], source: 1, region: 1, end: 8, time: [0, 0.5], level: 1, load: [1, 2000] };
  assert.deepEqual(chipsOf(state), [
    ["ranks 0, 1, 2 and 1 more", { ranks: undefined }],
    ["rank 1 to any", { source: undefined, destination: undefined }],
    ["region halo", { region: undefined }],
    ["on leaf0 port 3 to spine port 1", { end: undefined }],
    ["0 ns to 500 ms", { time: undefined }],
    ["links up to level 1", { level: undefined }],
    ["load of 1 B to 2 kB", { load: undefined }],
  ]);
});

test("half a pair has a chip too, and one removes both halves", () => {
  assert.deepEqual(chipsOf({ destination: 0 }), [["rank any to 0", { source: undefined, destination: undefined }]]);
  assert.deepEqual(chipsOf({ to: 0 }), [["host any to host0", { from: undefined, to: undefined }]]);
  assert.deepEqual(chipsOf({ from: 0, to: 3 }), [["host host0 to host3", { from: undefined, to: undefined }]]);
});

test("the first of its kind is a filter as others are", () => {
  const state = { ranks: [0], hosts: [0], operation: 0, job: 0, node: 0, rail: 0, level: 0 };
  assert.deepEqual(chipsOf(state), [
    ["rank 0", { ranks: undefined }],
    ["host host0", { hosts: undefined }],
    ["SEND", { operation: undefined }],
    ["job all jobs", { job: undefined }],
    ["through host0 HCA", { node: undefined }],
    ["rail (small)", { rail: undefined }],
    ["links up to level 0", { level: undefined }],
  ]);
});

test("ranges of changes and of properties have their own units", () => {
  const changes = encodeChanges(RUN, { change: [-1000, 2000] }, THEMES.light, LOADS, BYTES, () => true);
  assert.deepEqual(describeFilters(changes, RUN.names), [["change of −1 kB to +2 kB", { change: undefined }]]);
  const delay = { name: "delay", unit: "s", value: new Float64Array(12).fill(1) };
  const values = encodeValue(RUN, { load: [1e-6, 1] }, THEMES.light, LOADS, delay);
  assert.deepEqual(describeFilters(values, RUN.names), [["delay of 1 µs to 1 s", { load: undefined }]]);
});
