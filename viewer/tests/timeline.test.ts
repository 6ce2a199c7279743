// SPDX-License-Identifier: Apache-2.0
// Traffic over time, computed by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadTable } from "../src/data/load_table";
import { Timeline } from "../src/data/timeline";
import { loadsOf, makeFlows, makeModel } from "./small_fabric";

/** Rank 0 sends 60 bytes to rank 1 in the first 2 s, then 30 to ranks 2 and 3. Rank 3 receives 10 bytes at 1 s. */
const INTERVALS = {
  rank: Int32Array.of(0, 0, 3),
  begin: Float64Array.of(0, 2, 1),
  end: Float64Array.of(2, 4, 1),
  firstPeer: Int32Array.of(0, 2, 0),
  lastPeer: Int32Array.of(1, 3, 1),
  bytes: Float64Array.of(60, 30, 10),
};
const JOBS = Int32Array.of(0, 0, 0, 0);

test("bins hold the part of each interval that is within them", () => {
  const timeline = new Timeline(INTERVALS, JOBS);
  assert.equal(timeline.seconds, 4);
  assert.deepEqual(timeline.jobs, [0]);
  assert.deepEqual([...timeline.bins(4, () => true)], [30, 40, 15, 15]);
  assert.deepEqual([...timeline.bins(4, (rank) => rank === 3)], [0, 10, 0, 0]);
  assert.deepEqual([...timeline.bins(1, () => true)], [100]);
});

test("the part of a flow is that of its pair's group", () => {
  const timeline = new Timeline(INTERVALS, JOBS);
  const flows = makeFlows();
  assert.deepEqual([...timeline.parts(flows, 0, 1)], [0.5, 0, 0]);
  // The interval of rank 3 has no length. 1 s is within [1, 2), but not within [0, 1).
  assert.deepEqual([...timeline.parts(flows, 1, 2)], [0.5, 0, 1]);
  assert.deepEqual([...timeline.parts(flows, 3, 4)], [0, 0.5, 0]);
});

test("bytes that the receiver recorded count for the flow to it", () => {
  const flows = makeFlows([{ from: 1, to: 3, bytes: 10 }]);
  // Rank 1 has no intervals. Rank 3 recorded its exchange with the group of ranks 0 and 1.
  assert.deepEqual([...new Timeline(INTERVALS, JOBS).parts(flows, 0, 2)], [1]);
});

test("groups of peers begin at the first rank of their job", () => {
  const intervals = { ...INTERVALS, rank: Int32Array.of(2, 2, 3), firstPeer: Int32Array.of(2, 2, 2) };
  const timeline = new Timeline({ ...intervals, lastPeer: Int32Array.of(3, 3, 3) }, Int32Array.of(0, 0, 1, 1));
  assert.deepEqual(timeline.jobs, [1]);
  const flows = makeFlows([
    { from: 2, to: 3, bytes: 9 },
    { from: 0, to: 1, bytes: 9 },
  ]);
  assert.deepEqual([...timeline.parts(flows, 0, 2)], [60 / 90, 0]);
});

test("the last group of a job may be smaller", () => {
  // Ranks 0 and 1 are a group, rank 2 is the other.
  const intervals = {
    rank: Int32Array.of(0, 0),
    begin: Float64Array.of(0, 1),
    end: Float64Array.of(1, 2),
    firstPeer: Int32Array.of(0, 2),
    lastPeer: Int32Array.of(1, 2),
    bytes: Float64Array.of(5, 7),
  };
  const flows = makeFlows([
    { from: 0, to: 1, bytes: 5 },
    { from: 0, to: 2, bytes: 7 },
  ]);
  assert.deepEqual([...new Timeline(intervals, Int32Array.of(0, 0, 0)).parts(flows, 0, 1)], [1, 0]);
  assert.deepEqual([...new Timeline(intervals, Int32Array.of(0, 0, 0)).parts(flows, 1, 2)], [0, 1]);
});

test("jobs are in the order of their numbers", () => {
  const intervals = { ...INTERVALS, rank: Int32Array.of(3, 0, 3) };
  assert.deepEqual(new Timeline(intervals, Int32Array.of(0, 0, 1, 1)).jobs, [0, 1]);
});

test("a run of no length is in the first bin", () => {
  const none = new Float64Array(3);
  assert.deepEqual([...new Timeline({ ...INTERVALS, begin: none, end: none }, JOBS).bins(2, () => true)], [100, 0]);
});

test("a time range loads links with rounded parts of the flows", () => {
  const table = new LoadTable(makeModel({ intervals: INTERVALS, rankJob: JOBS }));
  assert.equal(loadsOf(table, { time: [0, 1] })[0], 50);
  assert.equal(loadsOf(table, { time: [3, 4] })[0], 500);
  assert.equal(loadsOf(table, { time: [0, 4] })[6], 2 ** 33 + 1);
  // The time range is a third of 2 s, so 33.5 of 100 bytes are in it.
  assert.equal(loadsOf(table, { time: [0, 0.67] })[3], 34);
});

test("the last bin and range include an interval of no length at the end", () => {
  const atEnd = { ...INTERVALS, begin: Float64Array.of(0, 2, 4), end: Float64Array.of(2, 4, 4) };
  const timeline = new Timeline(atEnd, JOBS);
  assert.deepEqual([...timeline.bins(2, () => true)], [60, 40]);
  assert.deepEqual([...timeline.parts(makeFlows(), 3, 4)], [0, 0.5, 1]);
});

test("without ranks the part of a flow is that of its job", () => {
  const intervals = {
    ...INTERVALS,
    rank: Int32Array.of(0, 1, 1),
    firstPeer: Int32Array.of(0, 1, 1),
    lastPeer: Int32Array.of(0, 1, 1),
  };
  const flows = { ...makeFlows(), job: Uint16Array.of(0, 1, 1) };
  const timeline = new Timeline(intervals, Int32Array.of(0, 1), true);
  assert.deepEqual([...timeline.parts(flows, 0, 2)], [1, 0.25, 0.25]);
  assert.deepEqual([...timeline.parts(flows, 3, 4)], [0, 0.375, 0.375]);
});
