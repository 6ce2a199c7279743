// SPDX-License-Identifier: Apache-2.0
// Bytes, exactly: sums of 64 bits and more in two halves of 32.

const HALF = 2 ** 32;

/** Amounts by number; sums of 2^21 halves are exact in a double. */
export class Amounts {
  readonly low: Float64Array;
  readonly high: Float64Array;

  constructor(readonly length: number) {
    this.low = new Float64Array(length);
    this.high = new Float64Array(length);
  }

  add(index: number, low: number, high: number): void {
    this.low[index] += low;
    this.high[index] += high;
  }

  exact(index: number): bigint {
    return (BigInt(this.high[index]) << 32n) + BigInt(this.low[index]);
  }

  /** The same, near enough to tell most amounts apart quickly. */
  rough(index: number): number {
    return this.high[index] * HALF + this.low[index];
  }

  /** What is more in `after` than in `before`: below 0 where it is less, 0 where `among` leaves out. */
  static difference(before: Amounts, after: Amounts, among: (index: number) => boolean = () => true): Amounts {
    const made = new Amounts(before.length);
    for (let index = 0; index < made.length; index++)
      if (among(index)) made.add(index, after.low[index] - before.low[index], after.high[index] - before.high[index]);
    return made;
  }

  /** The same without signs. */
  magnitudes(): Amounts {
    const made = new Amounts(this.length);
    for (let index = 0; index < made.length; index++) {
      const sign = this.rough(index) < 0 ? -1 : 1;
      made.add(index, sign * this.low[index], sign * this.high[index]);
    }
    return made;
  }

  total(): bigint {
    let sum = 0n;
    for (let index = 0; index < this.length; index++) if (this.rough(index)) sum += this.exact(index);
    return sum;
  }
}

export interface Ranking {
  /** The greatest, in order. */
  first: number[];
  /** How many are above 0, the least and the greatest of them. */
  used: number;
  least: number;
  most: number;
}

/** Ranks amounts above 0 and gives the first `limit`; `before` orders those that are equal. */
export function rank(
  amounts: Amounts,
  limit: number,
  before = (one: number, other: number): number => one - other,
  among: (index: number) => boolean = () => true,
): Ranking {
  const first: number[] = [];
  const ranking = { first, used: 0, least: Number.POSITIVE_INFINITY, most: 0 };
  const precedes = (one: number, other: number): boolean => {
    const [a, b] = [amounts.rough(one), amounts.rough(other)];
    if (a !== b) return a > b;
    if (a < Number.MAX_SAFE_INTEGER) return before(one, other) < 0;
    const [exactA, exactB] = [amounts.exact(one), amounts.exact(other)];
    return exactA === exactB ? before(one, other) < 0 : exactA > exactB;
  };
  for (let index = 0; index < amounts.length; index++) {
    const amount = amounts.rough(index);
    if (!amount || !among(index)) continue;
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
