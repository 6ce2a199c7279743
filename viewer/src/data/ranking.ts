// SPDX-License-Identifier: Apache-2.0
// The largest of many amounts, in order.

import type { Amounts } from "./amounts";

export interface Ranking {
  /** Indices of the largest amounts, in descending order. */
  first: number[];
  /** Of all amounts above 0: their number, the smallest and the largest. */
  used: number;
  least: number;
  most: number;
}

/** Order by time (amount / `rate`); at equal times, by ascending `precedence`. */
export interface TimeOrder {
  rate: (index: number) => number;
  precedence: (index: number) => number;
}

/**
 * Sort the amounts above 0, descending, and return the first `limit`. `compareTied` orders equal amounts; only amounts
 * that `isIncluded` accepts count. With `time`, amounts are sorted by time, then by precedence, then by amount.
 */
export function rankLargest(
  amounts: Amounts,
  limit: number,
  compareTied = (one: number, other: number): number => one - other,
  isIncluded: (index: number) => boolean = () => true,
  time?: TimeOrder,
): Ranking {
  const first: number[] = [];
  const ranking = { first, used: 0, least: Number.POSITIVE_INFINITY, most: 0 };
  const precedes = (one: number, other: number): boolean => {
    const [a, b] = [amounts.approximate(one), amounts.approximate(other)];
    if (time) {
      const [needed, against] = [a / time.rate(one), b / time.rate(other)];
      if (needed !== against) return needed > against;
      const precedence = time.precedence(one) - time.precedence(other);
      if (precedence) return precedence < 0;
    }
    if (a !== b) return a > b;
    if (a < Number.MAX_SAFE_INTEGER) return compareTied(one, other) < 0;
    const [exactA, exactB] = [amounts.exact(one), amounts.exact(other)];
    return exactA === exactB ? compareTied(one, other) < 0 : exactA > exactB;
  };
  for (let index = 0; index < amounts.length; index++) {
    const amount = amounts.approximate(index);
    if (!amount || !isIncluded(index)) continue;
    ranking.used++;
    ranking.least = Math.min(ranking.least, amount);
    ranking.most = Math.max(ranking.most, amount);
    if (first.length === limit && !precedes(index, first[limit - 1])) continue;
    let [low, high] = [0, first.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (precedes(index, first[middle])) high = middle;
      else low = middle + 1;
    }
    first.splice(low, 0, index);
    if (first.length > limit) first.pop();
  }
  if (!ranking.used) ranking.least = 0;
  return ranking;
}
