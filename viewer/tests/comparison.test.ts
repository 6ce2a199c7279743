// SPDX-License-Identifier: Apache-2.0
// Changes between two runs, by hand: in bytes and as shares.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Amounts } from "../src/data/amounts";
import { type ChangeKind, Comparison } from "../src/data/comparison";
import { BYTES, SHARES } from "../src/data/measure";
import type { ComparedRun, Run } from "../src/run";
import { measureFor, otherRunIndex, runIndex } from "../src/run_pair";
import { describeLargestChanges, describeOtherLoad, describeOwnLoad, nameChangeKey } from "../src/text/comparison_text";
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
  assert.deepEqual([comparison.isKnown(3), comparison.isKnown(5)], [false, true]);
  assert.equal(new Comparison(unknown.table, BEFORE.table, BYTES).isKnown(3), false);
});

test("with port counters there are no changes by sender", () => {
  const counted = makeRun({ flows: null, load: new BigUint64Array(12) });
  for (const [one, other] of [
    [BEFORE, counted],
    [counted, BEFORE],
  ]) {
    const comparison = new Comparison(one.table, other.table, BYTES);
    assert.deepEqual([comparison.hasFlows, comparison.hasRankedFlows], [false, false]);
    assert.deepEqual(comparison.find({}, "region", 5), { first: [], count: 0 });
  }
});

test("ranks are compared where both runs know them, hosts in any case", () => {
  const flows = { ...makeFlows([{ from: 0, to: 2, bytes: 500 }]), sourceRank: Int32Array.of(-1) };
  // There are more ranks than hosts, as in a run with two ranks on a host.
  const names = { rank_names: ["0", "1", "2", "3", "4", "5"] };
  const before = makeRun({ flows: BEFORE.model.flows }, names);
  const unranked = makeRun({ flows }, names);
  const comparison = new Comparison(before.table, unranked.table, BYTES);
  assert.deepEqual([comparison.hasFlows, comparison.hasRankedFlows], [true, false]);
  assert.equal(new Comparison(unranked.table, before.table, BYTES).hasRankedFlows, false);
  const { source, destination } = comparison.pairs("hostPair");
  const found = comparison.find({}, "hostPair", 5).first;
  assert.deepEqual(
    found.map(({ key, before: own, after }) => [source[key], destination[key], own, after]),
    [
      [0, 2, 300n, 500n],
      [0, 1, 100n, 0n],
    ],
  );
});

test("there may be more ranks than hosts", () => {
  const names = { rank_names: ["0", "1", "2", "3", "4", "5"] };
  const flows = {
    ...makeFlows([
      { from: 0, to: 2, bytes: 6 },
      { from: 0, to: 2, bytes: 7 },
    ]),
    // If ranks were numbered by the four hosts, both pairs would be the same.
    sourceRank: Int32Array.of(0, 1),
    destinationRank: Int32Array.of(5, 1),
  };
  const run = makeRun({ flows }, names);
  const comparison = new Comparison(run.table, AFTER.table, BYTES);
  const { source, destination } = comparison.pairs("rankPair");
  const found = comparison
    .find({}, "rankPair", 9)
    .first.map(({ key, before }) => [source[key], destination[key], before]);
  assert.deepEqual(found.slice(-2), [
    [1, 1, 7n],
    [0, 5, 6n],
  ]);
});

test("a selection applies to both runs", () => {
  const { comparison } = compare();
  const changes = comparison.find({ source: 0, destination: 2 }, "region", 5);
  assert.deepEqual(
    changes.first.map(({ key, before, after }) => [key, before, after]),
    [
      [0, 0n, 360n],
      [1, 300n, 0n],
    ],
  );
});

test("a list of changes leaves out what is not included", () => {
  const { comparison, before, after } = compare();
  // Link directions 0 and 3 have the largest changes, 360 and 300 bytes.
  const { first, count } = comparison.list(before, after, 1, (end) => end !== 0);
  assert.deepEqual(
    first.map(({ key }) => key),
    [3],
  );
  assert.equal(count, 5);
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
  // The change is from 300 of 400 bytes to 360 of 800 bytes.
  assert.deepEqual([change.before, change.after], [750_000_000_000n, 450_000_000_000n]);
  assert.equal(SHARES.formatChange(Number(change.after - change.before)), "−30 points");
  assert.equal(BYTES.convert(shares, AFTER.model), shares);
});

test("a share is a whole number of parts", () => {
  const third = makeModel({}, { bytes_routed: "300" });
  const bytes = new Amounts(1);
  bytes.add(0, 100, 0);
  assert.equal(SHARES.convert(bytes, third).exact(0), 333_333_333_333n);
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

test("a load that one run does not know is no change", () => {
  const known = Uint8Array.from({ length: 12 }, (_, end) => (end === 3 ? 0 : 1));
  const unknown = makeRun({ known, flows: AFTER.model.flows }, { name: "unknown" });
  const [before, after] = [BEFORE.table.loadOfEnds({}), unknown.table.loadOfEnds({})];
  const there = { run: unknown, comparison: new Comparison(BEFORE.table, unknown.table, BYTES), before, after };
  assert.equal(describeOtherLoad(BEFORE, there, 3), "unknown: not counted");
  const back = {
    run: BEFORE,
    comparison: new Comparison(unknown.table, BEFORE.table, BYTES),
    before: after,
    after: before,
  };
  assert.equal(describeOtherLoad(unknown, back, 3), "before: 100 B");
  assert.equal(describeOwnLoad(unknown, back, 3), "unknown: not counted");
});

test("the largest changes are those of the selection, by host where ranks are unknown", () => {
  const compared = compare();
  const change = describeLargestChanges(BEFORE, compared, { region: 1 }, 0);
  assert.equal(change, "rank 0 to rank 2 −300 B (−100%); region halo −300 B (−100%); SEND −300 B (−100%)");
  const flows = { ...makeFlows([{ from: 0, to: 2, bytes: 500 }]), sourceRank: Int32Array.of(-1) };
  const unranked = makeRun({ flows }, { name: "unranked" });
  const comparison = new Comparison(BEFORE.table, unranked.table, BYTES);
  const other = {
    run: unranked,
    comparison,
    before: BEFORE.table.loadOfEnds({}),
    after: unranked.table.loadOfEnds({}),
  };
  assert.match(describeLargestChanges(BEFORE, other, {}, 0), /^host0 to host2 \+200 B/);
});

test("changes are named by what they are of", () => {
  const { comparison } = compare();
  const nameOf = (kind: ChangeKind, key: number): string => nameChangeKey(BEFORE, comparison, kind, key);
  assert.deepEqual(
    [nameOf("region", 1), nameOf("operation", 1), nameOf("job", 0)],
    ["region halo", "BCAST", "job all jobs"],
  );
  const whole = makeRun({}, { regions: ["*"] });
  assert.equal(nameChangeKey(whole, comparison, "region", 0), "all regions");
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
  assert.equal(measureFor({}, counters, four), BYTES);
  assert.equal(measureFor({ by: "bytes" }, four, three), BYTES);
  assert.equal(measureFor({ by: "share" }, four, four), SHARES);
});
