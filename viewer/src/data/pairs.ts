// SPDX-License-Identifier: Apache-2.0
// Pairs of things that flows go between, numbered, so that bytes of a pair are added up in an array.

export const NO_PAIR = -1;

export interface Pairs {
  count: number;
  /** The two of each pair. */
  source: Int32Array;
  destination: Int32Array;
  /** Pair of each flow, `NO_PAIR` where one of its two is none. */
  of: Int32Array;
}

/** Numbers the pairs of flows from `source[flow]` to `destination[flow]`, both below 2^26; below 0 is none. */
export function numberPairs(source: ArrayLike<number>, destination: ArrayLike<number>): Pairs {
  const flows = source.length;
  const of = new Int32Array(flows).fill(NO_PAIR);
  let size = 1;
  while (size < 2 * flows + 2) size *= 2;
  const slots = new Int32Array(size).fill(NO_PAIR);
  const [from, to] = [new Int32Array(flows), new Int32Array(flows)];
  let count = 0;
  for (let flow = 0; flow < flows; flow++) {
    const [one, other] = [source[flow], destination[flow]];
    if (one < 0 || other < 0) continue;
    // Flows of one pair mostly follow one another.
    if (count && from[count - 1] === one && to[count - 1] === other) {
      of[flow] = count - 1;
      continue;
    }
    let slot = (Math.imul(one, 0x9e3779b1) ^ Math.imul(other, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & (size - 1);
    while (slots[slot] !== NO_PAIR && (from[slots[slot]] !== one || to[slots[slot]] !== other))
      slot = (slot + 1) & (size - 1);
    if (slots[slot] === NO_PAIR) {
      slots[slot] = count;
      [from[count], to[count]] = [one, other];
      count++;
    }
    of[flow] = slots[slot];
  }
  return { count, source: from.slice(0, count), destination: to.slice(0, count), of };
}
