// SPDX-License-Identifier: Apache-2.0
// Exact sums, differences and rankings of byte counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Amounts } from "../src/data/amounts";
import { rankLargest } from "../src/data/ranking";

const HALF = 2n ** 32n;

function amountsOf(...values: bigint[]): Amounts {
  const amounts = new Amounts(values.length);
  values.forEach((value, index) => {
    amounts.add(index, Number(value % HALF), Number(value / HALF));
  });
  return amounts;
}

function exact(amounts: Amounts): bigint[] {
  return Array.from({ length: amounts.length }, (_, index) => amounts.exact(index));
}

test("2^20 counts of 2^63 - 1 bytes have an exact sum", () => {
  const amounts = new Amounts(1);
  for (let count = 0; count < 2 ** 20; count++) amounts.add(0, 0xffffffff, 0x7fffffff);
  assert.equal(amounts.exact(0), 9671406556917033396600832n);
  assert.equal(amounts.total(), 9671406556917033396600832n);
});

test("a difference keeps its sign and borrows between the halves", () => {
  const difference = Amounts.difference(amountsOf(2n ** 33n, 5n, 7n), amountsOf(1n, 2n ** 40n, 7n));
  assert.deepEqual(exact(difference), [1n - 2n ** 33n, 2n ** 40n - 5n, 0n]);
  assert.deepEqual(exact(difference.magnitudes()), [2n ** 33n - 1n, 2n ** 40n - 5n, 0n]);
  const first = Amounts.difference(amountsOf(1n, 1n), amountsOf(3n, 3n), (index) => index === 0);
  assert.deepEqual(exact(first), [2n, 0n]);
});

test("the largest come first, zeros are not ranked, ties follow their index", () => {
  const ranking = rankLargest(amountsOf(5n, 0n, 9n, 5n, 1n), 3);
  assert.deepEqual(ranking, { first: [2, 0, 3], used: 4, least: 1, most: 9 });
  const reversed = rankLargest(amountsOf(5n, 0n, 9n, 5n, 1n), 3, (one, other) => other - one);
  assert.deepEqual(reversed.first, [2, 3, 0]);
  const odd = rankLargest(amountsOf(5n, 0n, 9n, 5n, 1n), 3, undefined, (index) => index % 2 === 1);
  assert.deepEqual(odd, { first: [3], used: 1, least: 5, most: 5 });
  assert.deepEqual(rankLargest(amountsOf(0n), 3), { first: [], used: 0, least: 0, most: 0 });
});

test("amounts that are equal as doubles are ranked exactly", () => {
  assert.equal(Number(2n ** 60n), Number(2n ** 60n + 1n));
  assert.deepEqual(rankLargest(amountsOf(2n ** 60n, 2n ** 60n + 1n), 2).first, [1, 0]);
  const equal = amountsOf(2n ** 60n, 2n ** 60n);
  assert.deepEqual(rankLargest(equal, 2).first, [0, 1]);
  assert.deepEqual(rankLargest(equal, 2, (one, other) => other - one).first, [1, 0]);
});

test("by time, unknown speeds come last, and equal times follow their precedence before their amounts", () => {
  const rates = [100, 200, 200, Number.POSITIVE_INFINITY, 100];
  const time = { rate: (index: number) => rates[index], precedence: (index: number) => (index === 1 ? 1 : 0) };
  const amounts = amountsOf(5n, 10n, 10n, 99n, 6n);
  assert.deepEqual(rankLargest(amounts, 5, undefined, undefined, time).first, [4, 2, 0, 1, 3]);
});
