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

/** Cells of a table that pairs are looked up in directly; beyond, they are hashed. */
const DIRECT = 1 << 24;

/** Numbers the pairs of flows from `source[flow]` to `destination[flow]`, both below `things`; below 0 is none. */
export function numberPairs(source: ArrayLike<number>, destination: ArrayLike<number>, things: number): Pairs {
  const flows = source.length;
  const of = new Int32Array(flows).fill(NO_PAIR);
  const from = new Int32Array(flows);
  const to = new Int32Array(flows);
  const slotOf = things * things <= DIRECT ? directSlots(things) : hashedSlots(flows, from, to);
  let count = 0;
  for (let flow = 0; flow < flows; flow++) {
    const one = source[flow];
    const other = destination[flow];
    if (one < 0 || other < 0) continue;
    // Flows of one pair mostly follow one another.
    if (!count || from[count - 1] !== one || to[count - 1] !== other) {
      from[count] = one;
      to[count] = other;
      const pair = slotOf(one, other, count);
      of[flow] = pair;
      if (pair === count) count++;
    } else of[flow] = count - 1;
  }
  return { count, source: from.slice(0, count), destination: to.slice(0, count), of };
}

/** Gives the number of a pair: the one that it was given before, else `next`. */
type Slots = (one: number, other: number, next: number) => number;

function directSlots(things: number): Slots {
  const slots = new Int32Array(things * things).fill(NO_PAIR);
  return (one, other, next) => {
    const slot = one * things + other;
    if (slots[slot] === NO_PAIR) slots[slot] = next;
    return slots[slot];
  };
}

function hashedSlots(flows: number, from: Int32Array, to: Int32Array): Slots {
  let size = 1;
  while (size < 2 * flows + 2) size *= 2;
  const slots = new Int32Array(size).fill(NO_PAIR);
  return (one, other, next) => {
    let slot = (Math.imul(one, 0x9e3779b1) ^ Math.imul(other, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & (size - 1);
    while (slots[slot] !== NO_PAIR && (from[slots[slot]] !== one || to[slots[slot]] !== other))
      slot = (slot + 1) & (size - 1);
    if (slots[slot] === NO_PAIR) slots[slot] = next;
    return slots[slot];
  };
}
