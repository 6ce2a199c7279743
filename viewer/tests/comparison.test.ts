// SPDX-License-Identifier: Apache-2.0
// Changes between two runs, by hand: in bytes and as shares.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Amounts } from "../src/data/amounts";
import { Comparison } from "../src/data/comparison";
import { BYTES, SHARES } from "../src/data/measure";
import type { ComparedRun, Run } from "../src/run";
import { measureFor, otherRunIndex, runIndex } from "../src/run_pair";
import { describeLargestChanges, describeOtherLoad, describeOwnLoad } from "../src/text/comparison_text";
import { makeFlows, makeModel, makeRun } from "./small_fabric";

const BEFORE = makeRun(
  {
    flows: makeFlows([
      { from: 0, to: 1, bytes: 100 },
      { from: 0, to: 2, bytes: 300, region: 1 },
    ]),
  },
  { name: "before", bytes_routed: "400" },
);
const AFTER = makeRun(
  {
    flows: makeFlows([
      { from: 0, to: 2, bytes: 360 },
      { from: 3, to: 2, bytes: 40 },
      { from: 0, to: 1, bytes: 400 },
    ]),
  },
  { name: "after", bytes_routed: "800" },
);

function compare(measure = BYTES): ComparedRun {
  const comparison = new Comparison(BEFORE.table, AFTER.table, measure);
  return { run: AFTER, comparison, before: BEFORE.table.loadOfEnds({}), after: AFTER.table.loadOfEnds({}) };
}

test("each link direction changes by the difference of its loads", () => {
  const { comparison, before, after } = compare();
  const change = comparison.changeOfEnds(before, after);
  const expected = [360, 0, 0, 300, 0, 100, 40, 0, 60, 0, 0, 60];
  assert.deepEqual(
    expected,
    Array.from({ length: 12 }, (_, end) => Number(change.exact(end))),
  );
});

test("an unknown load has no change", () => {
  const known = Uint8Array.from({ length: 12 }, (_, end) => (end === 3 ? 0 : 1));
  const unknown: Run = makeRun({ known, flows: AFTER.model.flows });
  const comparison = new Comparison(BEFORE.table, unknown.table, BYTES);
  const change = comparison.changeOfEnds(BEFORE.table.loadOfEnds({}), unknown.table.loadOfEnds({}));
  assert.deepEqual([change.exact(3), change.exact(5)], [0n, 100n]);
});

test("pairs of both runs share one numbering, the largest change first", () => {
  const { comparison } = compare();
  const changes = comparison.find({}, "rankPair", 2);
  const { source, destination } = comparison.pairs("rankPair");
  const found = changes.first.map(({ key, bytesBefore, bytesAfter }) => [
    source[key],
    destination[key],
    Number(bytesBefore),
    Number(bytesAfter),
  ]);
  assert.deepEqual(found, [
    [0, 1, 100, 400],
    [0, 2, 300, 360],
  ]);
  assert.equal(changes.count, 3);
  const regions = comparison.find({}, "region", 5).first.map(({ key, before, after }) => [key, before, after]);
  assert.deepEqual(regions, [
    [0, 100n, 800n],
    [1, 300n, 0n],
  ]);
});

test("as shares, each amount is a part of its own run", () => {
  const shares = SHARES.convert(AFTER.table.loadOfEnds({}), AFTER.model);
  // 400 of 800 bytes, in parts of 10^12.
  assert.equal(shares.exact(3), 500_000_000_000n);
  assert.equal(SHARES.format(Number(shares.exact(3))), "50%");
  const { comparison } = compare(SHARES);
  const [change] = comparison.find({}, "rankPair", 1).first;
  // From 300 of 400 to 360 of 800.
  assert.deepEqual([change.before, change.after], [750_000_000_000n, 450_000_000_000n]);
  assert.equal(SHARES.formatChange(Number(change.after - change.before)), "−30 points");
  assert.equal(BYTES.convert(shares, AFTER.model), shares);
});

test("a run without bytes has no shares", () => {
  const empty = makeModel({}, { bytes_routed: "0" });
  assert.equal(SHARES.convert(new Amounts(1), empty).exact(0), 0n);
});

test("changes in words", () => {
  const compared = compare();
  assert.equal(describeOwnLoad(BEFORE, compared, 3), "before: 100 B");
  assert.equal(describeOtherLoad(BEFORE, compared, 3), "after: 400 B, +300 B (+300%)");
  assert.equal(describeOtherLoad(BEFORE, compared, 6), "after: 40 B, +40 B (new)");
  assert.equal(describeOtherLoad(BEFORE, compared, 1), "after: 0 B, unchanged");
  assert.equal(
    describeLargestChanges(BEFORE, compared, {}, 0),
    "rank 0 to rank 1 +300 B (+300%); region main +660 B (+660%); SEND +360 B (+90%)",
  );
  assert.equal(describeOtherLoad(BEFORE, compare(SHARES), 3), "after: 400 B, 50%, +25 points (+100%)");
});

test("the two runs that are compared", () => {
  assert.deepEqual([runIndex({}), otherRunIndex({})], [0, 1]);
  assert.deepEqual([runIndex({ run: 1 }), otherRunIndex({ run: 1 })], [1, 0]);
  assert.equal(otherRunIndex({ run: 1, against: 2 }), 2);
  assert.equal(otherRunIndex({ run: 2, against: 2 }), 0);
});

test("runs of different size are compared by share, unless bytes are selected", () => {
  const four = makeModel();
  const three = makeModel({ rankJob: Int32Array.of(0, 0, 0, -1) });
  const counters = makeModel({ rankJob: new Int32Array(0) });
  assert.equal(measureFor({}, four, four), BYTES);
  assert.equal(measureFor({}, four, three), SHARES);
  assert.equal(measureFor({}, four, counters), BYTES);
  assert.equal(measureFor({ by: "bytes" }, four, three), BYTES);
  assert.equal(measureFor({ by: "share" }, four, four), SHARES);
});
