// SPDX-License-Identifier: Apache-2.0
// Cached values: computed once, or once for each change of the argument.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keepLast, lazy } from "../src/data/cache";

test("a lazy value is computed once, also if it is undefined", () => {
  let calls = 0;
  const value = lazy(() => {
    calls++;
    return undefined;
  });
  assert.equal(calls, 0);
  value();
  value();
  assert.equal(calls, 1);
});

test("only the value of the last argument is kept", () => {
  const calls: number[][] = [];
  const sum = keepLast((numbers: number[]) => {
    calls.push(numbers);
    return numbers[0] + numbers[1];
  });
  assert.deepEqual([sum([1, 2]), sum([1, 2]), sum([1, 3]), sum([1, 2])], [3, 3, 4, 3]);
  assert.deepEqual(calls, [
    [1, 2],
    [1, 3],
    [1, 2],
  ]);
});
