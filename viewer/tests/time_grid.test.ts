// SPDX-License-Identifier: Apache-2.0
// The grid of ranks and times, compared with values by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axisTicks, hourTicks, NO_REGION, TimeGrid } from "../src/data/time_grid";
import { Timeline } from "../src/data/timeline";

/** Of 4 s, rank 0 sends 60 bytes in the first 2 s, and rank 1 sends 30 bytes in the last 2 s. */
const SENT = {
  rank: Int32Array.of(0, 1),
  begin: Float64Array.of(0, 2),
  end: Float64Array.of(2, 4),
  firstPeer: Int32Array.of(1, 0),
  lastPeer: Int32Array.of(1, 0),
  bytes: Float64Array.of(60, 30),
};
/** Rank 0 is inside MPI for half of the first second, rank 1 for the whole last second. */
const INSIDE = {
  rank: Int32Array.of(0, 1),
  begin: Float64Array.of(0, 3),
  end: Float64Array.of(1, 4),
  seconds: Float64Array.of(0.5, 1),
};
/** Rank 0 is in `halo` for the first 1.6 s, then in `main`. Rank 1 is in `main` from 1 s on. */
const VISITS = {
  rank: Int32Array.of(0, 0, 1),
  region: Uint16Array.of(1, 0, 0),
  begin: Float64Array.of(0, 1.6, 1),
  end: Float64Array.of(1.6, 4, 4),
  names: ["main", "halo", "never"],
};

test("a row is a rank, a column a part of the time", () => {
  const grid = new TimeGrid({ ...SENT, inside: INSIDE, visits: VISITS }, 4, 2, 4, 10);
  assert.equal(grid.rows, 2);
  assert.deepEqual([...grid.bytes()], [30, 30, 0, 0, 0, 0, 15, 15]);
  assert.deepEqual([...(grid.insideParts() ?? [])], [0.5, 0, 0, 0, 0, 0, 0, 1]);
  const { at, order } = grid.regions() ?? { at: [], order: [] };
  assert.deepEqual(order, [0, 1]);
  assert.deepEqual([...at], [1, 1, 0, 0, NO_REGION, 0, 0, 0]);
});

test("consecutive ranks share a row if there are many", () => {
  const grid = new TimeGrid({ ...SENT, inside: INSIDE, visits: VISITS }, 4, 2, 2, 1);
  assert.deepEqual([grid.rows, grid.ranksOf(0)], [1, [0, 1]]);
  assert.deepEqual([...grid.bytes()], [60, 30]);
  // A cell covers 2 s of two ranks. In the first cell, ranks are inside MPI for 0.5 s, in the next cell for 1 s.
  assert.deepEqual([...(grid.insideParts() ?? [])], [0.125, 0.25]);
  assert.deepEqual([...(grid.regions()?.at ?? [])], [1, 0]);
  assert.deepEqual(new TimeGrid(SENT, 4, 5, 2, 2).ranksOf(1), [3, 4]);
});

test("without times and visits there are none", () => {
  const grid = new TimeGrid(SENT, 4, 2, 4, 10);
  assert.equal(grid.insideParts(), null);
  assert.equal(grid.regions(), null);
});

test("the table has the part of the time that included ranks are inside MPI", () => {
  const timeline = new Timeline({ ...SENT, inside: INSIDE }, Int32Array.of(0, 0));
  assert.deepEqual([...(timeline.insideParts(4, () => true) ?? [])], [0.25, 0, 0, 0.5]);
  assert.deepEqual([...(timeline.insideParts(2, (rank) => rank === 1) ?? [])], [0, 0.5]);
});

test("time inside MPI after the last bytes is on the axis", () => {
  const late = { ...INSIDE, end: Float64Array.of(1, 6) };
  assert.equal(new Timeline({ ...SENT, inside: late }, Int32Array.of(0, 0)).seconds, 6);
});

test("ticks are at round moments", () => {
  assert.deepEqual(axisTicks(1, 5), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
  assert.deepEqual(axisTicks(0.07, 5), [0, 0.02, 0.04, 0.06]);
  assert.deepEqual(axisTicks(0, 5), [0]);
});

test("ticks of a day are at whole hours", () => {
  assert.deepEqual(hourTicks(1800, 7200, 5), [1800, 5400]);
  assert.deepEqual(hourTicks(0, 86400, 5), [0, 21600, 43200, 64800, 86400]);
  assert.deepEqual(
    hourTicks(0, 30 * 86400, 5),
    [0, 6, 12, 18, 24, 30].map((day) => day * 86400),
  );
  assert.deepEqual(hourTicks(1800, 60, 5), []);
});
