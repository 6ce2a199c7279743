// SPDX-License-Identifier: Apache-2.0
// Keys by which flows are summed: region, operation, site, job, rank, host, pairs of ranks and pairs of hosts.

import { lazy } from "./cache";
import type { Flows, Model } from "./model";
import { NO_PAIR, numberPairs, type Pairs } from "./pairs";

/** `of`: [flow], the flow's key from 0 to `count` - 1; negative without a key. */
export interface FlowKey {
  of: ArrayLike<number>;
  count: number;
  /** The order of keys with equal sums; by default by number. */
  compare?: (one: number, other: number) => number;
}

/** Sending and receiving host of each flow. */
interface FlowHosts {
  source: Int32Array;
  destination: Int32Array;
}

export class FlowKeys {
  private readonly lazyHosts = lazy(() => this.findHosts());
  private readonly lazyRankPairs = lazy(() => this.numberRankPairs());
  private readonly lazyHostPairs = lazy(() => this.numberHostPairs());
  private readonly lazyEndpointPairs = lazy(() => this.numberEndpointPairs());

  constructor(private readonly model: Model) {}

  region(): FlowKey {
    return this.column((flows) => flows.region, this.model.header.regions);
  }

  operation(): FlowKey {
    return this.column((flows) => flows.operation, this.model.header.operations);
  }

  site(): FlowKey {
    return this.column((flows) => flows.site, this.model.header.sites);
  }

  job(): FlowKey {
    return this.column((flows) => flows.job, this.model.header.jobs);
  }

  sourceRank(): FlowKey {
    return this.column((flows) => flows.sourceRank, this.model.header.rank_names);
  }

  destinationRank(): FlowKey {
    return this.column((flows) => flows.destinationRank, this.model.header.rank_names);
  }

  sourceHost(): FlowKey {
    return this.column(() => this.hosts.source, this.model.header.host_names);
  }

  destinationHost(): FlowKey {
    return this.column(() => this.hosts.destination, this.model.header.host_names);
  }

  rankPair(): FlowKey {
    return this.rankPairs ?? NO_FLOWS;
  }

  hostPair(): FlowKey {
    return this.hostPairs ?? NO_FLOWS;
  }

  endpointPair(): FlowKey {
    return this.endpointPairs ?? NO_FLOWS;
  }

  /** Pairs of ranks; null without flows. */
  get rankPairs(): Pairs | null {
    return this.lazyRankPairs();
  }

  get hostPairs(): Pairs | null {
    return this.lazyHostPairs();
  }

  /** Pairs of endpoints. An endpoint is a rank, or an address if the rank is unknown. Addresses follow all ranks. */
  get endpointPairs(): Pairs | null {
    return this.lazyEndpointPairs();
  }

  get hosts(): FlowHosts {
    return this.lazyHosts();
  }

  private numberRankPairs(): Pairs | null {
    const { flows, header } = this.model;
    return flows && numberPairs(flows.sourceRank, flows.destinationRank, header.rank_names.length);
  }

  private numberHostPairs(): Pairs | null {
    const { flows, header } = this.model;
    return flows && numberPairs(this.hosts.source, this.hosts.destination, header.host_names.length);
  }

  private numberEndpointPairs(): Pairs | null {
    const { flows, header } = this.model;
    if (!flows || isEveryRankKnown(flows)) return this.rankPairs;
    const ranks = header.rank_names.length;
    const endpoints = (rank: ArrayLike<number>, address: ArrayLike<number>): Int32Array =>
      mapInt32(rank.length, (flow) => (rank[flow] >= 0 ? rank[flow] : ranks + address[flow]));
    return numberPairs(
      endpoints(flows.sourceRank, flows.source),
      endpoints(flows.destinationRank, flows.destination),
      ranks + flows.addressNode.length,
    );
  }

  private findHosts(): FlowHosts {
    const { flows, nodeHost } = this.model;
    if (!flows) return { source: new Int32Array(0), destination: new Int32Array(0) };
    const { addressNode, count, source, destination } = flows;
    const hostOf = mapInt32(addressNode.length, (address) =>
      addressNode[address] < 0 ? -1 : nodeHost[addressNode[address]],
    );
    return {
      source: mapInt32(count, (flow) => hostOf[source[flow]]),
      destination: mapInt32(count, (flow) => hostOf[destination[flow]]),
    };
  }

  private column(of: (flows: Flows) => ArrayLike<number>, names: string[]): FlowKey {
    const { flows } = this.model;
    return flows ? { of: of(flows), count: names.length } : { of: [], count: names.length };
  }
}

const NO_FLOWS: FlowKey = { of: [], count: 0 };

/** Return pairs as keys: the number of a pair is `numberOf[pair]`, from 0 to `count` - 1. */
export function renumberPairs(pairs: Pairs, numberOf: Int32Array, count: number): FlowKey {
  const of = mapInt32(pairs.of.length, (flow) => (pairs.of[flow] < 0 ? NO_PAIR : numberOf[pairs.of[flow]]));
  return { of, count };
}

function isEveryRankKnown({ count, sourceRank, destinationRank }: Flows): boolean {
  for (let flow = 0; flow < count; flow++) if (sourceRank[flow] < 0 || destinationRank[flow] < 0) return false;
  return true;
}

/** Like Int32Array.from, but many times faster. */
function mapInt32(count: number, value: (index: number) => number): Int32Array {
  const mapped = new Int32Array(count);
  for (let index = 0; index < count; index++) mapped[index] = value(index);
  return mapped;
}
