// SPDX-License-Identifier: Apache-2.0
// Numbering of pairs, checked against a map.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_PAIR, numberPairs } from "../src/data/pairs";

test("each pair gets one number in the order of its first flow", () => {
  const pairs = numberPairs([0, 0, 2, -1, 0, 2], [1, 1, 0, 3, 3, 0], 4);
  assert.equal(pairs.count, 3);
  assert.deepEqual([...pairs.source], [0, 2, 0]);
  assert.deepEqual([...pairs.destination], [1, 0, 3]);
  assert.deepEqual([...pairs.of], [0, 0, 1, NO_PAIR, 2, 1]);
  assert.deepEqual([0, 1, 2].sort(pairs.compare), [0, 2, 1]);
});

test("a flow whose receiver is unknown has no pair", () => {
  const pairs = numberPairs([1, 1, 2], [0, -1, 3], 4);
  assert.deepEqual([...pairs.of], [0, NO_PAIR, 1]);
  assert.equal(pairs.count, 2);
});

// 2^13 endpoints make a table of 2^26 pairs, which are hashed.
for (const endpoints of [200, 8192])
  test(`pairs of ${endpoints} endpoints are those of a map`, () => {
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % 200;
    };
    const source = Array.from({ length: 30000 }, random);
    const destination = Array.from({ length: 30000 }, random);
    const numbers = new Map<string, number>();
    const expected = source.map((from, flow) => {
      const key = `${from} ${destination[flow]}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key);
    });
    const pairs = numberPairs(source, destination, endpoints);
    assert.equal(pairs.count, numbers.size);
    assert.deepEqual([...pairs.of], expected);
    for (let flow = 0; flow < 30000; flow++) {
      assert.equal(pairs.source[pairs.of[flow]], source[flow]);
      assert.equal(pairs.destination[pairs.of[flow]], destination[flow]);
    }
  });

test("hashed pairs with one destination are distinct", () => {
  const source = Array.from({ length: 8192 }, (_, at) => (at * 5) % 8192);
  const destination = new Array(8192).fill(7);
  assert.equal(numberPairs(source, destination, 8192).count, 8192);
});
