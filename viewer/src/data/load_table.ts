// SPDX-License-Identifier: Apache-2.0
// Loads that selected flows put on link directions, and the shares of ranks, operations and other keys in these loads.

import { SELECTION, type Selection } from "../state";
import { Amounts } from "./amounts";
import { keepLast, lazy } from "./cache";
import { compileSelection, markFlowsThrough } from "./flow_filter";
import { type FlowIndex, indexFlows, searchFlows } from "./flow_index";
import { type FlowKey, FlowKeys } from "./flow_keys";
import type { Flows, Intervals, Model } from "./model";
import { findPairRoutes } from "./pair_routes";
import { rankLargest } from "./ranking";
import { Router } from "./routes";
import { Timeline } from "./timeline";

const HALF = 2 ** 32;
/** With fewer possible keys than this, summing all keys is faster than first numbering the keys that occur. */
const FEW_KEYS = 4096;

export interface Share {
  key: number;
  bytes: bigint;
}

export interface Shares {
  /** The largest shares, in descending order. */
  first: Share[];
  /** Number and total bytes of all shares, also of those not in `first`. */
  count: number;
  total: bigint;
}

export class LoadTable {
  readonly timeline: Timeline | null;
  readonly by: FlowKeys;
  private readonly router: Router | null;
  /** Loads of all traffic, for the folded picture. */
  private readonly whole = lazy(() => this.sumOfEnds({}));
  private index: FlowIndex | null = null;
  private readonly ranked = lazy(() => this.model.flows?.sourceRank.some((rank) => rank >= 0) ?? false);
  private readonly searched = keepLast((end: number) => searchFlows((this.router as Router).paths, end));
  private readonly flowsThrough = keepLast((node: number) =>
    markFlowsThrough(this.model, (this.router as Router).paths, node),
  );
  private readonly partsWithin = keepLast(([from, to]: number[]) =>
    (this.timeline as Timeline).parts(this.model.flows as Flows, from, to),
  );

  constructor(readonly model: Model) {
    this.by = new FlowKeys(model);
    this.router = model.flows ? new Router(model, model.flows) : null;
    this.timeline = model.intervals && makeTimeline(model, model.intervals);
  }

  /**
   * Return the load that a selection puts on each link direction. The result may be cached: callers must not change it.
   */
  loadOfEnds(selection: Selection): Amounts {
    return SELECTION.every((part) => selection[part] === undefined) ? this.whole() : this.sumOfEnds(selection);
  }

  private sumOfEnds(selection: Selection): Amounts {
    const amounts = new Amounts(2 * this.model.links);
    const { load } = this.model;
    if (!this.router) {
      for (let end = 0; load && end < load.length; end++)
        amounts.add(end, Number(load[end] & 0xffffffffn), Number(load[end] >> 32n));
      return amounts;
    }
    const { offset, end } = this.router.paths;
    this.visit(selection, (flow, low, high) => {
      for (let hop = offset[flow]; hop < offset[flow + 1]; hop++) amounts.add(end[hop], low, high);
    });
    return amounts;
  }

  /** For each key, return the bytes that the selection's flows put on links. */
  sumBy(selection: Selection, { of, count }: FlowKey): Amounts {
    const amounts = new Amounts(count);
    if (!this.router) return amounts;
    const { offset } = this.router.paths;
    this.visit(selection, (flow, low, high) => {
      if (offset[flow] !== offset[flow + 1] && of[flow] >= 0) amounts.add(of[flow], low, high);
    });
    return amounts;
  }

  /** Return the keys with the largest sums. */
  shares(selection: Selection, key: FlowKey, limit: number): Shares {
    const { compare = (one: number, other: number): number => one - other } = key;
    // Few keys occur on one link direction, so sum only these.
    const compressed = selection.end === undefined ? null : this.compress(selection.end, key);
    const { of, keys } = compressed ?? { of: key.of, keys: null };
    const amounts = this.sumBy(selection, { of, count: keys ? keys.length : key.count });
    const keyAt = (index: number): number => (keys ? keys[index] : index);
    const { first, used } = rankLargest(amounts, limit, (one, other) => compare(keyAt(one), keyAt(other)));
    const shares = first.map((index) => ({ key: keyAt(index), bytes: amounts.exact(index) }));
    return { first: shares, count: used, total: amounts.total() };
  }

  /** Number the keys that occur on a link direction. Return null without flows, or with few possible keys. */
  private compress(end: number, key: FlowKey): { of: ArrayLike<number>; keys: number[] } | null {
    if (key.count < FEW_KEYS || !this.router) return null;
    const keys: number[] = [];
    const slots = new Map<number, number>();
    const of: number[] = [];
    for (const flow of this.flowsOn(end)) {
      const each = key.of[flow];
      if (each < 0) continue;
      let slot = slots.get(each);
      if (slot === undefined) {
        slot = keys.push(each) - 1;
        slots.set(each, slot);
      }
      of[flow] = slot;
    }
    return { of, keys };
  }

  isKnown(end: number): boolean {
    return !this.model.known || this.model.known[end] === 1;
  }

  get hasFlows(): boolean {
    return this.router !== null;
  }

  /** True if the ranks of the flows are known. */
  get hasRankedFlows(): boolean {
    return this.ranked();
  }

  /** Return the route of the selected pair on each rail; null if no pair is selected, or if there are no flows. */
  pairRoutes(selection: Selection): number[][] | null {
    return this.router && findPairRoutes(this.model, this.by, this.router, selection);
  }

  /** Build the index of flows before its first use. */
  prepare(): void {
    if (this.router) this.index ??= indexFlows(this.router.paths, 2 * this.model.links);
  }

  /** Call `call` for each flow of a selection, with the low and the high 32 bits of the flow's bytes. */
  private visit(selection: Selection, call: (flow: number, low: number, high: number) => void): void {
    const { flows } = this.model;
    if (!flows || !this.router) return;
    const isSelected = compileSelection(flows, this.by, this.flowsThrough, selection);
    const parts = selection.time && this.timeline ? this.partsWithin(selection.time) : null;
    const { bytesLow, bytesHigh } = flows;
    const visitFlow = (flow: number): void => {
      if (!isSelected(flow)) return;
      if (!parts) call(flow, bytesLow[flow], bytesHigh[flow]);
      else {
        const amount = Math.round(parts[flow] * (bytesHigh[flow] * HALF + bytesLow[flow]));
        if (amount) call(flow, amount % HALF, Math.floor(amount / HALF));
      }
    };
    if (selection.end === undefined) {
      for (let flow = 0; flow < flows.count; flow++) visitFlow(flow);
      return;
    }
    for (const flow of this.flowsOn(selection.end)) visitFlow(flow);
  }

  /** Return the flows on a link direction, ascending. */
  private flowsOn(end: number): Uint32Array {
    const { index } = this;
    return index ? index.flow.subarray(index.first[end], index.first[end + 1]) : this.searched(end);
  }
}

function makeTimeline({ rankJob, header }: Model, intervals: Intervals): Timeline {
  const isByJob = !rankJob.length;
  return new Timeline(intervals, isByJob ? Int32Array.from(header.jobs, (_, job) => job) : rankJob, isByJob);
}
