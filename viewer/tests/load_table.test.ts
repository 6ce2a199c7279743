// SPDX-License-Identifier: Apache-2.0
// Loads of selections on the small fabric, summed by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadTable } from "../src/data/load_table";
import type { Selection } from "../src/state";
import { loadsOf, makeFlows, makeModel, makeRun } from "./small_fabric";

const LARGE = 2 ** 33 + 1;

function expectLoads(selection: Selection, expected: Record<number, number>): void {
  const loads = Array.from({ length: 12 }, (_, end) => expected[end] ?? 0);
  assert.deepEqual(loadsOf(makeRun().table, selection), loads);
}

const SHORT = { 0: 100, 3: 100 };
const ACROSS = { 0: 1000, 8: 1000, 11: 1000, 5: 1000 };
const BACK = { 6: LARGE, 10: LARGE, 9: LARGE, 1: LARGE };

test("without a selection all flows load their routes", () => {
  expectLoads({}, { ...SHORT, ...ACROSS, ...BACK, 0: 1100 });
});

test("selections by rank, host and pair", () => {
  expectLoads({ ranks: [1] }, SHORT);
  expectLoads({ ranks: [1, 2] }, { ...SHORT, ...ACROSS, 0: 1100 });
  expectLoads({ hosts: [3] }, BACK);
  expectLoads({ source: 0, destination: 2 }, ACROSS);
  expectLoads({ from: 3, to: 0 }, BACK);
  expectLoads({ from: 0 }, { ...SHORT, ...ACROSS, 0: 1100 });
  expectLoads({ to: 2 }, ACROSS);
  expectLoads({ from: 1, to: 2 }, {});
  expectLoads({ source: 2, destination: 0 }, {});
});

test("selections by region, operation, job, link direction and node combine", () => {
  expectLoads({ region: 1 }, ACROSS);
  expectLoads({ operation: 1 }, BACK);
  expectLoads({ region: 1, operation: 1 }, {});
  expectLoads({ job: 0, region: 0 }, { ...SHORT, ...BACK });
  expectLoads({ end: 0 }, { ...SHORT, ...ACROSS, 0: 1100 });
  expectLoads({ end: 8 }, ACROSS);
  expectLoads({ node: 6 }, { ...ACROSS, ...BACK });
  expectLoads({ node: 1 }, SHORT);
  expectLoads({ end: 0, region: 0 }, SHORT);
});

test("a selection by call site leaves out the others", () => {
  const flows = { ...makeFlows(), site: Int32Array.of(0, 1, 0) };
  const table = new LoadTable(makeModel({ flows }, { sites: ["a.c:1", "a.c:2"] }));
  assert.deepEqual(loadsOf(table, { site: 1 })[0], 1000);
  assert.deepEqual(loadsOf(table, { site: 0 })[0], 100);
});

test("a selection by job leaves out the others", () => {
  const flows = { ...makeFlows(), job: Int32Array.of(0, 1, 0) };
  const table = new LoadTable(makeModel({ flows }, { jobs: ["a", "b"] }));
  assert.deepEqual(loadsOf(table, { job: 1 })[0], 1000);
  assert.deepEqual(loadsOf(table, { job: 0 })[0], 100);
});

test("the index of flows by link direction changes no load", () => {
  const { table } = makeRun();
  const before = loadsOf(table, { end: 0 });
  table.prepare();
  assert.deepEqual(loadsOf(table, { end: 0 }), before);
  assert.deepEqual(loadsOf(table, { end: 7 }), new Array(12).fill(0));
  // The flow on link direction 6 is the last flow.
  assert.equal(loadsOf(table, { end: 6 })[6], LARGE);
});

test("shares are the largest sums by a key, with their total", () => {
  const { table } = makeRun();
  const { first, count, total } = table.shares({}, table.by.sourceRank(), 1);
  assert.deepEqual(first, [{ key: 3, bytes: BigInt(LARGE) }]);
  assert.equal(count, 2);
  assert.equal(total, BigInt(LARGE) + 1100n);
  const onEnd = table.shares({ end: 0 }, table.by.region(), 5);
  assert.deepEqual(onEnd.first, [
    { key: 1, bytes: 1000n },
    { key: 0, bytes: 100n },
  ]);
});

test("shares of a key with many values on one link direction", () => {
  const { table } = makeRun();
  const of = Int32Array.of(9000, 12, -1);
  const { first, count, total } = table.shares({ end: 0 }, { of, count: 10000 }, 5);
  assert.deepEqual(first, [
    { key: 12, bytes: 1000n },
    { key: 9000, bytes: 100n },
  ]);
  assert.deepEqual([count, total], [2, 1100n]);
  // A flow without a key has no share.
  const unknown = table.shares({ end: 0 }, { of: Int32Array.of(-1, 12, 5), count: 10000 }, 5);
  assert.deepEqual(unknown, { first: [{ key: 12, bytes: 1000n }], count: 1, total: 1000n });
});

test("equal shares are in the order of their keys", () => {
  const flows = makeFlows([
    { from: 0, to: 1, bytes: 5 },
    { from: 0, to: 2, bytes: 5 },
  ]);
  const table = new LoadTable(makeModel({ flows }));
  for (const count of [10, 10000]) {
    const { first } = table.shares({ end: 0 }, { of: Int32Array.of(9, 3), count }, 5);
    assert.deepEqual(
      first.map(({ key }) => key),
      [3, 9],
    );
  }
});

test("bytes that load no link belong to no sum", () => {
  const flows = makeFlows([
    { from: 1, to: 1, bytes: 70 },
    { from: 0, to: 1, bytes: 3 },
  ]);
  const table = new LoadTable(makeModel({ flows }));
  const sums = table.sumBy({}, table.by.sourceRank());
  assert.deepEqual([sums.exact(0), sums.exact(1)], [3n, 0n]);
});

test("a selected pair has its route, sent on or not", () => {
  const { table } = makeRun();
  assert.equal(table.pairRoutes({ ranks: [0] }), null);
  assert.deepEqual(table.pairRoutes({ source: 2, destination: 3 }), [[4, 7]]);
  assert.deepEqual(table.pairRoutes({ from: 0, to: 2 }), [[0, 8, 11, 5]]);
  assert.deepEqual(table.pairRoutes({ from: 1, to: 3 }), [[2, 8, 11, 7]]);
});

test("without flows the loads are those of the file, whatever the selection", () => {
  const load = BigUint64Array.from({ length: 12 }, (_, end) => 2n ** 62n + 2n ** 31n + BigInt(end));
  const table = new LoadTable(makeModel({ flows: null, load, known: new Uint8Array(12).fill(1, 3) }));
  assert.equal(table.loadOfEnds({ ranks: [1] }).exact(5), 2n ** 62n + 2n ** 31n + 5n);
  assert.equal(table.hasFlows, false);
  assert.deepEqual([table.isKnown(2), table.isKnown(3)], [false, true]);
  assert.deepEqual(table.shares({}, table.by.rankPair(), 3), { first: [], count: 0, total: 0n });
});

test("an endpoint without a rank is its address, numbered after the ranks", () => {
  const flows = { ...makeFlows(), sourceRank: Int32Array.of(0, -1, 3) };
  const run = makeRun({ flows });
  const pairs = run.table.by.endpointPairs;
  assert.deepEqual(pairs && [[...pairs.source], [...pairs.destination]], [
    [0, 4, 3],
    [1, 2, 0],
  ]);
  assert.equal(run.names.endpointPair(1), "host0 HCA to rank 2");
});
