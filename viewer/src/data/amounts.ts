// SPDX-License-Identifier: Apache-2.0
// Exact sums of 64-bit byte counts, which are stored as two halves of 32 bits.

const HALF = 2 ** 32;

/** Index -> sum. The sum of 2^21 halves is exact in a double. */
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

  /** Return the amount rounded to a double, which is fast and sufficient to order most amounts. */
  approximate(index: number): number {
    return this.high[index] * HALF + this.low[index];
  }

  /** Return `after - before`; 0 where `isIncluded` is false. */
  static difference(before: Amounts, after: Amounts, isIncluded: (index: number) => boolean = () => true): Amounts {
    const difference = new Amounts(before.length);
    for (let index = 0; index < difference.length; index++)
      if (isIncluded(index))
        difference.add(index, after.low[index] - before.low[index], after.high[index] - before.high[index]);
    return difference;
  }

  /** Return the absolute values of all amounts. */
  magnitudes(): Amounts {
    const magnitudes = new Amounts(this.length);
    for (let index = 0; index < magnitudes.length; index++) {
      const sign = this.approximate(index) < 0 ? -1 : 1;
      magnitudes.add(index, sign * this.low[index], sign * this.high[index]);
    }
    return magnitudes;
  }

  total(): bigint {
    let sum = 0n;
    for (let index = 0; index < this.length; index++) if (this.approximate(index)) sum += this.exact(index);
    return sum;
  }
}
