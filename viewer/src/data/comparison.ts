// SPDX-License-Identifier: Apache-2.0
// Changes between two runs on one fabric, for each link direction, pair, operation, region, site and job.

import type { Selection } from "../state";
import { Amounts } from "./amounts";
import { type FlowKey, renumberPairs } from "./flow_keys";
import type { LoadTable } from "./load_table";
import type { Measure } from "./measure";
import { numberPairs, type Pairs } from "./pairs";
import { rankLargest } from "./ranking";

export type ChangeKind = "region" | "operation" | "site" | "job" | "rankPair" | "hostPair";

/** The amounts of one key in each run: in bytes, and in the comparison's measure (`before`, `after`). */
export interface Change {
  /** The number of a link direction, region, ...; for pairs, the index in `Comparison.pairs`. */
  key: number;
  bytesBefore: bigint;
  bytesAfter: bigint;
  before: bigint;
  after: bigint;
}

export interface Changes {
  /** The largest changes, in descending order. */
  first: Change[];
  /** The total number of changes. */
  count: number;
}

/** The pairs that occur in either run. `before`, `after`: each flow's pair, in the first and second run. */
interface SharedPairs {
  source: Int32Array;
  destination: Int32Array;
  before: FlowKey;
  after: FlowKey;
}

export class Comparison {
  private readonly sharedPairs = new Map<string, SharedPairs>();

  constructor(
    readonly before: LoadTable,
    readonly after: LoadTable,
    readonly measure: Measure,
  ) {}

  /** True if the senders are known in both runs. */
  get hasFlows(): boolean {
    return this.before.hasFlows && this.after.hasFlows;
  }

  get hasRankedFlows(): boolean {
    return this.hasFlows && this.before.hasRankedFlows && this.after.hasRankedFlows;
  }

  isKnown(end: number): boolean {
    return this.before.isKnown(end) && this.after.isKnown(end);
  }

  /** Return `after` - `before` for each link direction; 0 if a load is unknown. */
  changeOfEnds(before: Amounts, after: Amounts): Amounts {
    return Amounts.difference(before, after, (end) => this.isKnown(end));
  }

  /** For one kind of key, return the largest changes of the keys' bytes on links. */
  find(selection: Selection, kind: ChangeKind, limit: number): Changes {
    if (!this.hasFlows) return { first: [], count: 0 };
    const [one, other] = this.keys(kind);
    return this.list(this.before.sumBy(selection, one), this.after.sumBy(selection, other), limit);
  }

  /** Return the largest changes among the keys that `isIncluded` accepts. */
  list(
    bytesBefore: Amounts,
    bytesAfter: Amounts,
    limit: number,
    isIncluded: (index: number) => boolean = () => true,
  ): Changes {
    const [before, after] = [this.measureBefore(bytesBefore), this.measureAfter(bytesAfter)];
    const { first, used } = rankLargest(Amounts.difference(before, after, isIncluded).magnitudes(), limit);
    const describe = (key: number): Change => ({
      key,
      bytesBefore: bytesBefore.exact(key),
      bytesAfter: bytesAfter.exact(key),
      before: before.exact(key),
      after: after.exact(key),
    });
    return { first: first.map(describe), count: used };
  }

  measureBefore(bytes: Amounts): Amounts {
    return this.measure.convert(bytes, this.before.model);
  }

  measureAfter(bytes: Amounts): Amounts {
    return this.measure.convert(bytes, this.after.model);
  }

  /** Return the pairs of ranks, or of hosts, that occur in either run. */
  pairs(kind: "rankPair" | "hostPair"): SharedPairs {
    const known = this.sharedPairs.get(kind);
    if (known) return known;
    const pairsOf = (table: LoadTable): Pairs | null => (kind === "rankPair" ? table.by.rankPairs : table.by.hostPairs);
    const [one, other] = [pairsOf(this.before), pairsOf(this.after)];
    if (!one || !other) throw new Error("these runs have no pairs");
    const { header } = this.before.model;
    const endpoints = kind === "rankPair" ? header.rank_names.length : header.host_names.length;
    const joined = numberPairs(join(one.source, other.source), join(one.destination, other.destination), endpoints);
    const shared = {
      source: joined.source,
      destination: joined.destination,
      before: renumberPairs(one, joined.of, joined.count),
      after: renumberPairs(other, joined.of.subarray(one.count), joined.count),
    };
    this.sharedPairs.set(kind, shared);
    return shared;
  }

  private keys(kind: ChangeKind): [FlowKey, FlowKey] {
    if (kind === "rankPair" || kind === "hostPair") {
      const { before, after } = this.pairs(kind);
      return [before, after];
    }
    return [this.before.by[kind](), this.after.by[kind]()];
  }
}

function join(one: Int32Array, other: Int32Array): Int32Array {
  const joined = new Int32Array(one.length + other.length);
  joined.set(one);
  joined.set(other, one.length);
  return joined;
}
