// SPDX-License-Identifier: Apache-2.0
// Names, and text on the senders on a link.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeGrid, membersOf, rangeOf } from "../src/data/attributes";
import { encodeLoads } from "../src/pictures/encoding";
import { findNodeJobs } from "../src/pictures/node_jobs";
import { THEMES } from "../src/pictures/palette";
import { hasSeveral, railLetter } from "../src/text/names";
import { describePointed } from "../src/text/tooltip_text";
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

test("senders are those of the selection", () => {
  assert.equal(RUN.names.describeSenders({ region: 0 }, 0), "rank 0 to rank 1 100.0%; region main 100.0%; SEND 100.0%");
});

test("names of what has none", () => {
  assert.equal(RUN.names.host(-1), "unknown");
  assert.equal(RUN.names.rank(9), "9");
  assert.equal(makeRun({}, { rank_names: ["0:0", "0:1"] }).names.rank(1), "0:1");
  const all = makeRun({}, { regions: ["*"], operations: ["*"] }).names;
  assert.deepEqual([all.region(0), all.operation(0), all.job(0)], ["all regions", "all operations", "all jobs"]);
  // Links that were inferred from delays have no ports.
  assert.equal(makeRun({ endPort: new Uint8Array(12) }).names.end(8), "leaf0 to spine");
});

test("a rail is named by its number, its rows and the last folder and file of its dump", () => {
  const rails = ["/data/rail1/ibdiagnet.lst", "/data/rail2/ibdiagnet.lst"].map((name) => ({ name, has_levels: true }));
  const { names } = makeRun({ nodeRail: Uint8Array.of(1, 1, 1, 1, 1, 1, 1) }, { rails });
  assert.equal(names.rail(1), "1 (rail2/ibdiagnet.lst), rows b");
  assert.equal(names.end(9), "rail 1: spine port 1 to leaf0 port 3");
  // After 26 rails the letters begin again.
  assert.equal(railLetter(makeRun({}, { rails: new Array(30).fill(rails[0]) }).model, 27), "b");
});

test("a rank is on the first rail that it has a node on", () => {
  const rail = { name: "rail", has_levels: true };
  const { names } = makeRun({ rankNode: Int32Array.of(0, 1, -1, 3, -1, -1) }, { rails: [rail, rail] });
  assert.deepEqual([names.nodeOfRank(0), names.nodeOfRank(1), names.nodeOfRank(2)], [0, 3, -1]);
});

test("a tooltip has the name first, then load, share and senders", () => {
  const encoding = encodeLoads(RUN, {}, THEMES.light, RUN.table.loadOfEnds({}));
  const page = { ...RUN, compared: null };
  assert.deepEqual(describePointed(page, encoding, { end: 0 }), [
    "host0 HCA port 1 to leaf0 port 1",
    "1,100 bytes (1.1 kB), <0.1% of bytes on links; 88 ns at line rate",
    "rank 0 to rank 2 90.9%; region halo 90.9%; SEND 100.0%",
  ]);
  assert.deepEqual(describePointed(page, encoding, { node: 2 }), [
    "host2 HCA",
    "0x00000000000000a2, level 0",
    "ranks 2",
  ]);
  assert.deepEqual(describePointed(page, encoding, {}), []);
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
  assert.deepEqual(rangeOf([4]), [4, 4]);
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
