// SPDX-License-Identifier: Apache-2.0
// What any selection of the flows puts on each link end: exact, in halves of 32 bits.

import type { Flows, Model } from "./document";
import { findPaths, type Paths } from "./routes";

const HALF = 2 ** 32;

/** Flows to look at: those that fit all that is given. */
export interface Selection {
  /** Sends or receives. */
  rank?: number | undefined;
  source?: number | undefined;
  destination?: number | undefined;
  region?: number | undefined;
  operation?: number | undefined;
  job?: number | undefined;
  end?: number | undefined;
}

/** Amounts of 64 bits and more; sums of 2^21 halves are exact in a double. */
export class Amounts {
  readonly low: Float64Array;
  readonly high: Float64Array;

  constructor(length: number) {
    this.low = new Float64Array(length);
    this.high = new Float64Array(length);
  }

  exact(index: number): bigint {
    return (BigInt(this.high[index]) << 32n) + BigInt(this.low[index]);
  }

  rough(index: number): number {
    return this.high[index] * HALF + this.low[index];
  }
}

export interface Share {
  key: number;
  bytes: bigint;
  /** The same, near enough to tell most shares apart quickly. */
  rough: number;
}

/** A number for a pair of `count` things, and the pair of it. */
export function keyOf(source: number, destination: number, count: number): number {
  return source * count + destination;
}

export function pairOf(key: number, count: number): [number, number] {
  return [Math.floor(key / count), key % count];
}

export class LoadTable {
  private readonly paths: Paths | null;
  private index: FlowIndex | null = null;

  constructor(private readonly model: Model) {
    this.paths = model.flows ? findPaths(model, model.flows) : null;
  }

  get hasFlows(): boolean {
    return this.paths !== null;
  }

  /** What each link end carries of a selection. */
  ofEnds(selection: Selection): Amounts {
    const amounts = new Amounts(2 * this.model.links);
    const { flows, load } = this.model;
    if (!flows || !this.paths) {
      for (let end = 0; load && end < load.length; end++) {
        amounts.low[end] = Number(load[end] & 0xffffffffn);
        amounts.high[end] = Number(load[end] >> 32n);
      }
      return amounts;
    }
    const { offset, end } = this.paths;
    this.visit(selection, (flow) => {
      for (let hop = offset[flow]; hop < offset[flow + 1]; hop++) {
        amounts.low[end[hop]] += flows.bytesLow[flow];
        amounts.high[end[hop]] += flows.bytesHigh[flow];
      }
    });
    return amounts;
  }

  /** Bytes over links of a selection by a key, the greatest first. */
  shares(selection: Selection, key: (flows: Flows, flow: number) => number): Share[] {
    const { flows } = this.model;
    if (!flows || !this.paths) return [];
    const slots = new Map<number, number>();
    const [low, high]: [number[], number[]] = [[], []];
    const { offset } = this.paths;
    this.visit(selection, (flow) => {
      if (offset[flow] === offset[flow + 1]) return;
      const which = key(flows, flow);
      const slot = slots.get(which);
      if (slot !== undefined) {
        low[slot] += flows.bytesLow[flow];
        high[slot] += flows.bytesHigh[flow];
        return;
      }
      slots.set(which, low.push(flows.bytesLow[flow]) - 1);
      high.push(flows.bytesHigh[flow]);
    });
    const shares = Array.from(slots, ([which, slot]) => ({
      key: which,
      bytes: (BigInt(high[slot]) << 32n) + BigInt(low[slot]),
      rough: high[slot] * HALF + low[slot],
    }));
    return shares.sort(
      (one, other) => other.rough - one.rough || compare(other.bytes, one.bytes) || one.key - other.key,
    );
  }

  /** Calls for each flow of a selection. */
  private visit(selection: Selection, call: (flow: number) => void): void {
    const { flows } = this.model;
    if (!flows || !this.paths) return;
    if (selection.end === undefined) {
      for (let flow = 0; flow < flows.count; flow++) if (fits(flows, flow, selection)) call(flow);
      return;
    }
    this.index ??= indexFlows(this.paths, 2 * this.model.links);
    const { first, flow } = this.index;
    for (let at = first[selection.end]; at < first[selection.end + 1]; at++)
      if (fits(flows, flow[at], selection)) call(flow[at]);
  }
}

function compare(one: bigint, other: bigint): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Whether a flow is of a selection, but for its link end. */
function fits(flows: Flows, flow: number, wanted: Selection): boolean {
  const { rank, source, destination, region, operation, job } = wanted;
  return (
    (region === undefined || flows.region[flow] === region) &&
    (operation === undefined || flows.operation[flow] === operation) &&
    (job === undefined || flows.job[flow] === job) &&
    (source === undefined || flows.sourceRank[flow] === source) &&
    (destination === undefined || flows.destinationRank[flow] === destination) &&
    (rank === undefined || flows.sourceRank[flow] === rank || flows.destinationRank[flow] === rank)
  );
}

/** The flows on link end e are `flow[first[e] .. first[e + 1]]`, ascending. */
interface FlowIndex {
  first: Uint32Array;
  flow: Uint32Array;
}

function indexFlows({ offset, end }: Paths, ends: number): FlowIndex {
  const first = new Uint32Array(ends + 1);
  for (const each of end) first[each + 1]++;
  for (let each = 0; each < ends; each++) first[each + 1] += first[each];
  const next = first.slice();
  const flow = new Uint32Array(end.length);
  for (let each = 0; each + 1 < offset.length; each++)
    for (let hop = offset[each]; hop < offset[each + 1]; hop++) flow[next[end[hop]]++] = each;
  return { first, flow };
}
