// SPDX-License-Identifier: Apache-2.0
// Names, tooltips and filter chips in words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeGrid, membersOf, rangeOf } from "../src/data/attributes";
import { encodeLoads } from "../src/pictures/encoding";
import { findNodeJobs } from "../src/pictures/node_jobs";
import { THEMES } from "../src/pictures/palette";
import { hasSeveral, railLetter } from "../src/text/names";
import { describePointed } from "../src/text/tooltip_text";
import { describeFilters } from "../src/widgets/filter_chips";
import { makeRun } from "./small_fabric";

const RUN = makeRun();

test("a link direction is named from its transmit port", () => {
  assert.equal(RUN.names.end(8), "leaf0 port 3 to spine port 1");
  assert.equal(RUN.names.end(9), "spine port 1 to leaf0 port 3");
  assert.equal(RUN.names.guid(5), "0x00000000000000b1");
  assert.equal(RUN.names.node(-1), "unknown");
});

test("the time at line rate is bytes over speed", () => {
  // 1.25 GB at 100 Gb/s.
  assert.equal(RUN.names.lineRateTime(0, 1.25e9), "100 ms at line rate");
  assert.equal(RUN.names.lineRateTime(10, 1), "speed unknown");
});

test("the largest senders have their shares", () => {
  assert.equal(RUN.names.describeSenders({}, 0), "rank 0 to rank 2 90.9%; region halo 90.9%; SEND 100.0%");
  const counters = makeRun({ flows: null });
  assert.equal(counters.names.describeSenders({}, 0), "senders not recorded in this file");
});

test("a tooltip has the name first, then load, share and senders", () => {
  const encoding = encodeLoads(RUN, {}, THEMES.light, RUN.table.loadOfEnds({}));
  const page = { ...RUN, compared: null };
  assert.deepEqual(describePointed(page, encoding, { end: 0 }), [
    "host0 HCA port 1 to leaf0 port 1",
    "1,100 bytes (1.1 kB), 0.0% of bytes on links; 88 ns at line rate",
    "rank 0 to rank 2 90.9%; region halo 90.9%; SEND 100.0%",
  ]);
  assert.deepEqual(describePointed(page, encoding, { node: 2 }), [
    "host2 HCA",
    "0x00000000000000a2, level 0",
    "ranks 2",
  ]);
  assert.deepEqual(describePointed(page, encoding, {}), []);
});

test("every active filter has a chip that removes it", () => {
  const state = { ranks: [0, 1, 2, 3], source: 1, region: 1, end: 8, time: [0, 0.5], level: 1, load: [1, 2000] };
  const encoding = encodeLoads(RUN, state, THEMES.light, RUN.table.loadOfEnds(state));
  assert.deepEqual(describeFilters(encoding, RUN.names), [
    ["ranks 0, 1, 2 and 1 more", { ranks: undefined }],
    ["rank 1 to any", { source: undefined, destination: undefined }],
    ["region halo", { region: undefined }],
    ["on leaf0 port 3 to spine port 1", { end: undefined }],
    ["0 ns to 500 ms", { time: undefined }],
    ["links up to level 1", { level: undefined }],
    ["load of 1 B to 2 kB", { load: undefined }],
  ]);
});

test("one rail has no letter, * is no distinction", () => {
  assert.equal(railLetter(RUN.model, 0), "");
  const rail = { name: "r", has_levels: true };
  assert.equal(railLetter(makeRun({}, { rails: [rail, rail] }).model, 1), "b");
  assert.deepEqual([hasSeveral(["*"]), hasSeveral(["main"]), hasSeveral([])], [false, true, false]);
});

test("attributes: classes, numbers, grids", () => {
  const roles = {
    name: "role",
    of: "node",
    classes: ["compute", "<b>"],
    value: Float64Array.of(0, 1, 0, Number.NaN),
  } as const;
  assert.deepEqual(membersOf({ ...roles, classes: [...roles.classes] }, 0), [0, 2]);
  assert.deepEqual(rangeOf([Number.NaN, 4, -2]), [-2, 4]);
  assert.equal(rangeOf([Number.NaN]), undefined);
  const run = makeRun({ attributes: [{ ...roles, classes: [...roles.classes] }] });
  assert.deepEqual(run.names.attributesOf("node", 1), ["role: <b>"]);
  assert.deepEqual(run.names.attributesOf("node", 3), []);
  assert.deepEqual(run.names.attributesOf("rank", 1), []);
  assert.deepEqual(makeGrid("grid", Int32Array.of(0, 2, 0, 1, 0, 0, -1, -1, -1)).extents, [2, 3, 1]);
});

test("a node has the first of its jobs", () => {
  assert.deepEqual(
    [...findNodeJobs(RUN)],
    [
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 0],
    ],
  );
});
