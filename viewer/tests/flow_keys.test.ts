// SPDX-License-Identifier: Apache-2.0
// Keys by which the bytes of flows are summed, on the small fabric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FlowKey, FlowKeys, renumberPairs } from "../src/data/flow_keys";
import { NO_PAIR, type Pairs } from "../src/data/pairs";
import { makeFlows, makeModel } from "./small_fabric";

function valuesOf({ of, count }: FlowKey): [number[], number] {
  return [Array.from(of), count];
}

function pairsOf(pairs: Pairs | null): [number, number][] {
  return Array.from(pairs?.of ?? [], (pair) => [pairs?.source[pair] ?? -1, pairs?.destination[pair] ?? -1]);
}

test("each key has a value for each flow, and as many values as there are names", () => {
  const flows = { ...makeFlows(), job: Int32Array.of(0, 4, 1) };
  const names = {
    regions: ["main", "halo"],
    operations: ["SEND", "BCAST", "REDUCE"],
    jobs: ["a", "b", "c", "d", "e"],
    rank_names: ["0", "1", "2", "3", "4", "5"],
  };
  const by = new FlowKeys(makeModel({ flows }, names));
  assert.deepEqual(valuesOf(by.region()), [[0, 1, 0], 2]);
  assert.deepEqual(valuesOf(by.operation()), [[0, 0, 1], 3]);
  assert.deepEqual(valuesOf(by.job()), [[0, 4, 1], 5]);
  assert.deepEqual(valuesOf(by.sourceRank()), [[0, 0, 3], 6]);
  assert.deepEqual(valuesOf(by.destinationRank()), [[1, 2, 0], 6]);
  assert.deepEqual(valuesOf(by.sourceHost()), [[0, 0, 3], 4]);
  assert.deepEqual(valuesOf(by.destinationHost()), [[1, 2, 0], 4]);
});

test("hosts are those of the addresses, whatever the ranks", () => {
  // Ranks 1 and 0 are on hosts 0 and 1; fewer ranks than hosts have names.
  const flows = {
    ...makeFlows(),
    sourceRank: Int32Array.of(1, 1, -1),
    destinationRank: Int32Array.of(0, -1, 1),
  };
  const by = new FlowKeys(makeModel({ flows }, { rank_names: ["0", "1"] }));
  assert.deepEqual(pairsOf(by.hostPairs), [
    [0, 1],
    [0, 2],
    [3, 0],
  ]);
  assert.deepEqual(valuesOf(by.hostPair()), [[0, 1, 2], 3]);
  assert.deepEqual(valuesOf(by.rankPair()), [[0, NO_PAIR, NO_PAIR], 1]);
});

test("an address without a node is of no host", () => {
  const flows = { ...makeFlows(), addressNode: Int32Array.of(0, 1, 2, -1) };
  const by = new FlowKeys(makeModel({ flows }));
  assert.deepEqual(valuesOf(by.sourceHost())[0], [0, 0, -1]);
  assert.deepEqual(valuesOf(by.hostPair())[0], [0, 1, NO_PAIR]);
});

test("endpoints are addresses too where one receiver's rank is unknown", () => {
  const flows = { ...makeFlows(), destinationRank: Int32Array.of(1, -1, 0) };
  const by = new FlowKeys(makeModel({ flows }));
  assert.deepEqual(pairsOf(by.endpointPairs), [
    [0, 1],
    [0, 4 + 2],
    [3, 0],
  ]);
  const known = new FlowKeys(makeModel());
  assert.equal(known.endpointPairs, known.rankPairs);
});

test("without flows every key is empty", () => {
  const by = new FlowKeys(makeModel({ flows: null }));
  assert.deepEqual(valuesOf(by.region()), [[], 2]);
  assert.deepEqual(valuesOf(by.sourceHost()), [[], 4]);
  for (const key of [by.rankPair(), by.hostPair(), by.endpointPair()]) assert.deepEqual(valuesOf(key), [[], 0]);
});

test("a flow without a pair has none under another numbering", () => {
  const pairs = {
    count: 2,
    source: Int32Array.of(0, 1),
    destination: Int32Array.of(1, 2),
    of: Int32Array.of(1, -1, 0),
    compare: (one: number, other: number): number => one - other,
  };
  assert.deepEqual(valuesOf(renumberPairs(pairs, Int32Array.of(7, 5), 9)), [[5, NO_PAIR, 7], 9]);
});
