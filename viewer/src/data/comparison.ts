// SPDX-License-Identifier: Apache-2.0
// Two runs on one fabric: what changed from the one to the other, of link ends, pairs, operations.

import type { Selection } from "../state";
import { Amounts, rank } from "./amounts";
import type { Key, LoadTable } from "./loads";
import type { Measure } from "./measure";
import { numberPairs, type Pairs } from "./pairs";

export type Kind = "region" | "operation" | "job" | "rankPair" | "hostPair";

/** What became of something, by bytes and by the comparison's measure. */
export interface Change {
  /** For pairs the number of the pair: see `Comparison.pairs`. */
  key: number;
  bytesBefore: bigint;
  bytesAfter: bigint;
  before: bigint;
  after: bigint;
}

export interface Changes {
  /** The greatest, in order. */
  first: Change[];
  /** How many there are in all. */
  count: number;
}

/** Pairs that occur in either run, numbered as one, and the key of each run's flows by them. */
interface SharedPairs {
  source: Int32Array;
  destination: Int32Array;
  before: Key;
  after: Key;
}

export class Comparison {
  private readonly made = new Map<string, SharedPairs>();

  constructor(
    readonly before: LoadTable,
    readonly after: LoadTable,
    readonly measure: Measure,
  ) {}

  /** Whether both runs know who sends. */
  get hasFlows(): boolean {
    return this.before.hasFlows && this.after.hasFlows;
  }

  get hasRankedFlows(): boolean {
    return this.hasFlows && this.before.hasRankedFlows && this.after.hasRankedFlows;
  }

  /** Whether both runs know what a link end carries. */
  knows(end: number): boolean {
    return this.before.knows(end) && this.after.knows(end);
  }

  /** What link ends carry more, or less, than before; 0 where one of the two is not known. */
  ofEnds(before: Amounts, after: Amounts): Amounts {
    return Amounts.difference(this.ofBefore(before), this.ofAfter(after), (end) => this.knows(end));
  }

  /** What changed most, of what is on links. */
  find(selection: Selection, kind: Kind, limit: number): Changes {
    if (!this.hasFlows) return { first: [], count: 0 };
    const [one, other] = this.keys(kind);
    return this.list(this.before.sumBy(selection, one), this.after.sumBy(selection, other), limit);
  }

  /** Lists the greatest changes of bytes; `among` leaves out the others. */
  list(
    bytesBefore: Amounts,
    bytesAfter: Amounts,
    limit: number,
    among: (index: number) => boolean = () => true,
  ): Changes {
    const [before, after] = [this.ofBefore(bytesBefore), this.ofAfter(bytesAfter)];
    const { first, used } = rank(Amounts.difference(before, after, among).magnitudes(), limit);
    const describe = (key: number): Change => ({
      key,
      bytesBefore: bytesBefore.exact(key),
      bytesAfter: bytesAfter.exact(key),
      before: before.exact(key),
      after: after.exact(key),
    });
    return { first: first.map(describe), count: used };
  }

  ofBefore(bytes: Amounts): Amounts {
    return this.measure.of(bytes, this.before.model);
  }

  ofAfter(bytes: Amounts): Amounts {
    return this.measure.of(bytes, this.after.model);
  }

  /** The two of each pair of a kind. */
  pairs(kind: "rankPair" | "hostPair"): SharedPairs {
    const known = this.made.get(kind);
    if (known) return known;
    const pairsOf = (table: LoadTable): Pairs | null => (kind === "rankPair" ? table.rankPairs : table.hostPairs);
    const [one, other] = [pairsOf(this.before), pairsOf(this.after)];
    if (!one || !other) throw new Error("these runs have no pairs");
    const { header } = this.before.model;
    const things = kind === "rankPair" ? header.rank_names.length : header.host_names.length;
    const joined = numberPairs(join(one.source, other.source), join(one.destination, other.destination), things);
    const made = {
      source: joined.source,
      destination: joined.destination,
      before: this.before.renumber(one, joined.of, joined.count),
      after: this.after.renumber(other, joined.of.subarray(one.count), joined.count),
    };
    this.made.set(kind, made);
    return made;
  }

  private keys(kind: Kind): [Key, Key] {
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
