// SPDX-License-Identifier: Apache-2.0
// Tooltips of nodes, and of link directions with one run, two runs, or a property of links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Comparison } from "../src/data/comparison";
import { BYTES } from "../src/data/measure";
import { type Encoding, encodeChanges, encodeLoads } from "../src/pictures/encoding";
import { THEMES } from "../src/pictures/palette";
import type { ComparedRun, Run } from "../src/run";
import type { State } from "../src/state";
import { describePointed } from "../src/text/tooltip_text";
import { makeFlows, makeRun } from "./small_fabric";

const RAIL = { name: "rail", has_levels: true };

function encode(run: Run, state: State = {}): Encoding {
  return encodeLoads(run, state, THEMES.light, run.table.loadOfEnds(state));
}

test("a node has its ranks, a long list is cut", () => {
  const names = Array.from({ length: 14 }, (_, rank) => String(rank));
  const crowded = makeRun({ rankNode: new Int32Array(14) }, { rank_names: names });
  const lines = describePointed({ ...crowded, compared: null }, encode(crowded), { node: 0 });
  assert.equal(lines[2], "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …");
  // There are two rails. Rank 1 is on node 2 of the first rail and on node 3 of the second rail.
  const railed = makeRun({ rankNode: Int32Array.of(0, 1, 2, 3) }, { rails: [RAIL, RAIL], rank_names: ["0", "1"] });
  assert.equal(describePointed({ ...railed, compared: null }, encode(railed), { node: 3 })[2], "ranks 1");
  // A switch has no ranks.
  assert.equal(describePointed({ ...railed, compared: null }, encode(railed), { node: 6 }).length, 2);
});

test("a network without traffic has properties of its links alone", () => {
  const delay = { name: "delay", unit: "s", value: new Float64Array(12).fill(2e-6) };
  const run = makeRun({ linkValues: [delay] }, { about: "inferred" });
  const page = { ...run, compared: null };
  const encoding = encode(run);
  assert.deepEqual(describePointed(page, encoding, { end: 8 }), ["leaf0 port 3 to spine port 1", "delay 2 µs"]);
  assert.deepEqual(describePointed(page, encoding, { node: 6 }), ["spine"]);
});

test("a load that was not counted is no 0", () => {
  const known = Uint8Array.from({ length: 12 }, (_, end) => (end === 2 ? 0 : 1));
  const run = makeRun({ flows: null, load: new BigUint64Array(12).fill(8n), known });
  const page = { ...run, compared: null };
  assert.equal(describePointed(page, encode(run), { end: 2 })[1], "not counted");
  assert.match(describePointed(page, encode(run), { end: 0 })[1], /^8 bytes/);
});

const BEFORE = makeRun({ flows: makeFlows([{ from: 0, to: 1, bytes: 100 }]) }, { name: "before", bytes_routed: "100" });
const AFTER = makeRun({ flows: makeFlows([{ from: 0, to: 1, bytes: 400 }]) }, { name: "after", bytes_routed: "800" });

function compare(): Run & { compared: ComparedRun } {
  const comparison = new Comparison(BEFORE.table, AFTER.table, BYTES);
  const [before, after] = [BEFORE.table.loadOfEnds({}), AFTER.table.loadOfEnds({})];
  return { ...BEFORE, compared: { run: AFTER, comparison, before, after } };
}

test("side by side, each picture has its own load first and the other run's next", () => {
  const page = compare();
  assert.deepEqual(describePointed(page, encode(BEFORE), { end: 0 }).slice(1, 3), [
    "100 bytes (100 B), 100.0% of bytes on links; 8 ns at line rate",
    "after: 400 B, +300 B (+300%)",
  ]);
  assert.deepEqual(describePointed(page, encode(AFTER), { end: 0 }).slice(1, 3), [
    "400 bytes (400 B), 50.0% of bytes on links; 32 ns at line rate",
    "before: 100 B",
  ]);
});

test("in the difference both loads have the same rank", () => {
  const page = compare();
  const { before, after, comparison } = page.compared;
  const change = comparison.changeOfEnds(before, after);
  const encoding = encodeChanges(BEFORE, {}, THEMES.light, change, BYTES, () => true);
  assert.deepEqual(describePointed(page, encoding, { end: 0 }), [
    "host0 HCA port 1 to leaf0 port 1",
    "before: 100 B",
    "after: 400 B, +300 B (+300%)",
  ]);
});
