// SPDX-License-Identifier: Apache-2.0
// Numbers for the pairs of sender and receiver, so that the bytes of pairs can be summed in an array.

export const NO_PAIR = -1;

export interface Pairs {
  count: number;
  /** Sender and receiver of each pair. */
  source: Int32Array;
  destination: Int32Array;
  /** Pair of each flow; `NO_PAIR` if the sender or receiver is unknown. */
  of: Int32Array;
  /** Order two pairs by sender, then by receiver. */
  compare: (one: number, other: number) => number;
}

/** Maximum number of possible pairs for a direct lookup table; above this, use a hash table. */
const DIRECT = 1 << 24;

/** Number the pairs (`source[flow]`, `destination[flow]`). Indices are below `endpoints`; negative if unknown. */
export function numberPairs(source: ArrayLike<number>, destination: ArrayLike<number>, endpoints: number): Pairs {
  const flows = source.length;
  const of = new Int32Array(flows).fill(NO_PAIR);
  const from = new Int32Array(flows);
  const to = new Int32Array(flows);
  const numberOf = endpoints * endpoints <= DIRECT ? directLookup(endpoints) : hashedLookup(flows, from, to);
  let count = 0;
  for (let flow = 0; flow < flows; flow++) {
    const one = source[flow];
    const other = destination[flow];
    if (one < 0 || other < 0) continue;
    // Flows of the same pair are mostly adjacent.
    if (!count || from[count - 1] !== one || to[count - 1] !== other) {
      from[count] = one;
      to[count] = other;
      const pair = numberOf(one, other, count);
      of[flow] = pair;
      if (pair === count) count++;
    } else of[flow] = count - 1;
  }
  const [sources, destinations] = [from.slice(0, count), to.slice(0, count)];
  const compare = (one: number, other: number): number =>
    sources[one] - sources[other] || destinations[one] - destinations[other];
  return { count, source: sources, destination: destinations, of, compare };
}

/** Return the number of a pair. A new pair gets the number `next`. */
type PairLookup = (one: number, other: number, next: number) => number;

function directLookup(endpoints: number): PairLookup {
  const slots = new Int32Array(endpoints * endpoints).fill(NO_PAIR);
  return (one, other, next) => {
    const slot = one * endpoints + other;
    if (slots[slot] === NO_PAIR) slots[slot] = next;
    return slots[slot];
  };
}

function hashedLookup(flows: number, from: Int32Array, to: Int32Array): PairLookup {
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
