// SPDX-License-Identifier: Apache-2.0
// What any selection of the flows puts on each link end, and whose it is.

import type { Selection } from "../state";
import { Amounts, rank } from "./amounts";
import { type Flows, type Model, NONE } from "./document";
import { NO_PAIR, numberPairs, type Pairs } from "./pairs";
import { Router } from "./routes";
import { Timeline } from "./timeline";

const HALF = 2 ** 32;
const SMALL = 4096;

/** A number for each flow, below a count; below 0 for none. */
export interface Key {
  of: ArrayLike<number>;
  count: number;
}

export interface Share {
  key: number;
  bytes: bigint;
}

export interface Shares {
  /** The greatest, in order. */
  first: Share[];
  /** How many there are in all, and their bytes. */
  count: number;
  total: bigint;
}

export class LoadTable {
  readonly timeline: Timeline | null;
  private readonly router: Router | null;
  private index: FlowIndex | null = null;
  private readonly made = new Map<string, unknown>();

  constructor(readonly model: Model) {
    this.router = model.flows ? new Router(model, model.flows) : null;
    this.timeline = model.intervals ? new Timeline(model.intervals, model.rankJob) : null;
  }

  /** What each link end carries of a selection. */
  ofEnds(selection: Selection): Amounts {
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

  /** Bytes over links of a selection by a key. */
  sumBy(selection: Selection, { of, count }: Key): Amounts {
    const amounts = new Amounts(count);
    if (!this.router) return amounts;
    const { offset } = this.router.paths;
    this.visit(selection, (flow, low, high) => {
      if (offset[flow] !== offset[flow + 1] && of[flow] >= 0) amounts.add(of[flow], low, high);
    });
    return amounts;
  }

  /** The greatest sums by a key. */
  shares(selection: Selection, key: Key, limit: number): Shares {
    // What is on a link end is little beside all that there is: a sum for those that occur alone.
    const sparse = selection.end !== undefined;
    const { of, keys } = sparse ? this.compress(selection.end as number, key) : { of: key.of, keys: null };
    const amounts = this.sumBy(selection, { of, count: keys ? keys.length : key.count });
    const name = (index: number): number => (keys ? keys[index] : index);
    const { first, used } = rank(amounts, limit, (one, other) => name(one) - name(other));
    const shares = first.map((index) => ({ key: name(index), bytes: amounts.exact(index) }));
    return { first: shares, count: used, total: amounts.total() };
  }

  /** Numbers the keys of the flows on a link end. */
  private compress(end: number, key: Key): { of: ArrayLike<number>; keys: number[] } {
    if (key.count < SMALL || !this.router)
      return { of: key.of, keys: Array.from({ length: key.count }, (_, at) => at) };
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

  /** Keys to sum by. */
  readonly by = {
    region: (): Key => this.column((flows) => flows.region, this.model.header.regions.length),
    operation: (): Key => this.column((flows) => flows.operation, this.model.header.operations.length),
    job: (): Key => this.column((flows) => flows.job, this.model.header.jobs.length),
    sourceRank: (): Key => this.column((flows) => flows.sourceRank, this.model.header.rank_names.length),
    destinationRank: (): Key => this.column((flows) => flows.destinationRank, this.model.header.rank_names.length),
    sourceHost: (): Key => this.column((flows) => this.hosts(flows).source, this.model.header.host_names.length),
    destinationHost: (): Key =>
      this.column((flows) => this.hosts(flows).destination, this.model.header.host_names.length),
    rankPair: (): Key => this.pairKey(this.rankPairs),
    hostPair: (): Key => this.pairKey(this.hostPairs),
    endpointPair: (): Key => this.pairKey(this.endpointPairs),
  };

  /** Keys of pairs that are numbered otherwise: `number[pair]`, below `count`. */
  renumber(pairs: Pairs, number: Int32Array, count: number): Key {
    return {
      of: mapIntegers(pairs.of.length, (flow) => (pairs.of[flow] < 0 ? NO_PAIR : number[pairs.of[flow]])),
      count,
    };
  }

  get rankPairs(): Pairs | null {
    return this.once("rank pairs", (flows) =>
      numberPairs(flows.sourceRank, flows.destinationRank, this.model.header.rank_names.length),
    );
  }

  get hostPairs(): Pairs | null {
    return this.once("host pairs", (flows) => {
      const { source, destination } = this.hosts(flows);
      return numberPairs(source, destination, this.model.header.host_names.length);
    });
  }

  /** Pairs of who sends and who receives: a rank where one is known; the address, numbered on behind the ranks, else. */
  get endpointPairs(): Pairs | null {
    const ranks = this.model.header.rank_names.length;
    return this.once("endpoint pairs", (flows) => {
      if (!this.hasUnrankedFlows) return this.rankPairs as Pairs;
      const ends = (rank: ArrayLike<number>, address: ArrayLike<number>): Int32Array =>
        mapIntegers(rank.length, (flow) => (rank[flow] >= 0 ? rank[flow] : ranks + address[flow]));
      const things = ranks + flows.addressNode.length;
      return numberPairs(ends(flows.sourceRank, flows.source), ends(flows.destinationRank, flows.destination), things);
    });
  }

  /** Whether what a link end carries is known at all. */
  knows(end: number): boolean {
    return !this.model.known || this.model.known[end] === 1;
  }

  get hasFlows(): boolean {
    return this.router !== null;
  }

  /** Whether flows are known by rank. */
  get hasRankedFlows(): boolean {
    return this.once("ranked", (flows) => flows.sourceRank.some((rank) => rank >= 0)) ?? false;
  }

  /**
   * For each rail the link ends that packets of a chosen pair, of ranks or of hosts, take there, whether any were sent
   * or not; none where there is no way. null where no pair is chosen.
   */
  ways({ source, destination, from, to }: Selection): number[][] | null {
    const { router } = this;
    const { flows, header } = this.model;
    if (!flows || !router) return null;
    const pairs = (find: (rail: number) => [number, number]): number[][] =>
      header.rails.map((_, rail) => router.way(...find(rail)));
    if (source !== undefined && destination !== undefined) {
      const address = (rank: number, rail: number): number => flows.rankAddress[rank * header.rails.length + rail];
      return pairs((rail) => [address(source, rail), address(destination, rail)]);
    }
    if (from === undefined || to === undefined) return null;
    const known = this.addressesOfHosts(flows, from, to);
    return pairs((rail) => known[rail]);
  }

  /** On each rail the addresses that two hosts use between them; where they do not, any that they have there. */
  private addressesOfHosts(flows: Flows, from: number, to: number): [number, number][] {
    const { nodeHost, nodeRail, header } = this.model;
    const { addressNode, addressColumn } = flows;
    const found = header.rails.map((): [number, number] => [NONE, NONE]);
    addressNode.forEach((node, address) => {
      if (node < 0) return;
      const addresses = found[nodeRail[node]];
      if (nodeHost[node] === from) addresses[0] = address;
      // To others no table leads.
      if (nodeHost[node] === to && addressColumn[address] !== NONE) addresses[1] = address;
    });
    const { source, destination } = this.hosts(flows);
    for (let flow = flows.count - 1; flow >= 0; flow--)
      if (source[flow] === from && destination[flow] === to)
        found[nodeRail[addressNode[flows.source[flow]]]] = [flows.source[flow], flows.destination[flow]];
    return found;
  }

  /** Makes what the look-up of flows by link end needs; else it is made when first asked for. */
  prepare(): void {
    if (this.router) this.index ??= indexFlows(this.router.paths, 2 * this.model.links);
  }

  /** Calls for each flow of a selection with the halves of its bytes. */
  private visit(selection: Selection, call: (flow: number, low: number, high: number) => void): void {
    const { flows } = this.model;
    if (!flows || !this.router) return;
    const fits = this.compile(flows, selection);
    const parts = this.partsOf(flows, selection.time);
    const { bytesLow, bytesHigh } = flows;
    const meet = (flow: number): void => {
      if (!fits(flow)) return;
      if (!parts) call(flow, bytesLow[flow], bytesHigh[flow]);
      else {
        const amount = Math.round(parts[flow] * (bytesHigh[flow] * HALF + bytesLow[flow]));
        if (amount) call(flow, amount % HALF, Math.floor(amount / HALF));
      }
    };
    if (selection.end === undefined) {
      for (let flow = 0; flow < flows.count; flow++) meet(flow);
      return;
    }
    for (const flow of this.flowsOn(selection.end)) meet(flow);
  }

  /** The flows on a link end, ascending. */
  private flowsOn(end: number): Uint32Array {
    if (this.index) return this.index.flow.subarray(this.index.first[end], this.index.first[end + 1]);
    // Looking for one end's flows is quicker than to make the index of all.
    const look = (flows: Flows): Uint32Array => {
      const { offset, end: ends } = (this.router as Router).paths;
      const found: number[] = [];
      for (let flow = 0; flow < flows.count; flow++)
        for (let hop = offset[flow]; hop < offset[flow + 1]; hop++) if (ends[hop] === end) found.push(flow);
      return Uint32Array.from(found);
    };
    return this.once(`on ${end}`, look) ?? new Uint32Array(0);
  }

  private partsOf(flows: Flows, time: number[] | undefined): Float64Array | null {
    const { timeline } = this;
    if (!time || !timeline) return null;
    return this.once(`parts ${time}`, () => timeline.parts(flows, time[0], time[1]));
  }

  /** Gives a test of whether a flow is of a selection, but for its link end and time. */
  private compile(flows: Flows, wanted: Selection): (flow: number) => boolean {
    const tests: ((flow: number) => boolean)[] = [];
    const equal = (column: ArrayLike<number>, value: number | undefined): void => {
      if (value !== undefined) tests.push((flow) => column[flow] === value);
    };
    const either = (one: ArrayLike<number>, other: ArrayLike<number>, values: number[] | undefined): void => {
      if (!values) return;
      const set = new Set(values);
      tests.push((flow) => set.has(one[flow]) || set.has(other[flow]));
    };
    equal(flows.region, wanted.region);
    equal(flows.operation, wanted.operation);
    equal(flows.job, wanted.job);
    equal(flows.sourceRank, wanted.source);
    equal(flows.destinationRank, wanted.destination);
    either(flows.sourceRank, flows.destinationRank, wanted.ranks);
    const byHost = [wanted.from, wanted.to, wanted.hosts].some((each) => each !== undefined);
    if (byHost) {
      const { source, destination } = this.hosts(flows);
      equal(source, wanted.from);
      equal(destination, wanted.to);
      either(source, destination, wanted.hosts);
    }
    if (wanted.node !== undefined) {
      const passing = this.passing(wanted.node);
      tests.push((flow) => passing[flow] === 1);
    }
    if (!tests.length) return () => true;
    return tests.length === 1 ? tests[0] : (flow) => tests.every((test) => test(flow));
  }

  /** 1 for each flow that starts at, ends at or passes a node. */
  private passing(node: number): Uint8Array {
    const marked = (flows: Flows): Uint8Array => {
      const { offset, end } = (this.router as Router).paths;
      const { endNode } = this.model;
      const passing = new Uint8Array(flows.count);
      for (let flow = 0; flow < flows.count; flow++)
        for (let hop = offset[flow]; hop < offset[flow + 1]; hop++)
          if (endNode[end[hop]] === node || endNode[end[hop] ^ 1] === node) passing[flow] = 1;
      return passing;
    };
    return this.once(`passing ${node}`, marked) ?? new Uint8Array(0);
  }

  private hosts(flows: Flows): { source: Int32Array; destination: Int32Array } {
    const { addressNode } = flows;
    const ofAddress = mapIntegers(addressNode.length, (address) =>
      addressNode[address] < 0 ? -1 : this.model.nodeHost[addressNode[address]],
    );
    const found = this.once("hosts", ({ count, source, destination }) => ({
      source: mapIntegers(count, (flow) => ofAddress[source[flow]]),
      destination: mapIntegers(count, (flow) => ofAddress[destination[flow]]),
    }));
    return found as { source: Int32Array; destination: Int32Array };
  }

  private get hasUnrankedFlows(): boolean | null {
    return this.once("unranked", ({ count, sourceRank, destinationRank }) => {
      for (let flow = 0; flow < count; flow++) if (sourceRank[flow] < 0 || destinationRank[flow] < 0) return true;
      return false;
    });
  }

  private column(of: (flows: Flows) => ArrayLike<number>, count: number): Key {
    const { flows } = this.model;
    return { of: flows ? of(flows) : [], count };
  }

  private pairKey(pairs: Pairs | null): Key {
    return pairs ?? { of: [], count: 0 };
  }

  /** Makes what is costly when it is first asked for; of what depends on a choice, the last alone is kept. */
  private once<T>(name: string, make: (flows: Flows) => T): T | null {
    const { flows } = this.model;
    if (!flows) return null;
    const [kind, ...choice] = name.split(" ");
    const key = choice.length && choice[0] !== "pairs" ? kind : name;
    const kept = this.made.get(key) as { name: string; value: T } | undefined;
    if (kept?.name === name) return kept.value;
    const value = make(flows);
    this.made.set(key, { name, value });
    return value;
  }
}

/** The flows on link end e are `flow[first[e] .. first[e + 1]]`, ascending. */
interface FlowIndex {
  first: Uint32Array;
  flow: Uint32Array;
}

/** As Int32Array.from, but many times as quick. */
function mapIntegers(count: number, value: (index: number) => number): Int32Array {
  const made = new Int32Array(count);
  for (let index = 0; index < count; index++) made[index] = value(index);
  return made;
}

function indexFlows({ offset, end }: { offset: Uint32Array; end: Uint32Array }, ends: number): FlowIndex {
  const first = new Uint32Array(ends + 1);
  for (const each of end) first[each + 1]++;
  for (let each = 0; each < ends; each++) first[each + 1] += first[each];
  const next = first.slice();
  const flow = new Uint32Array(end.length);
  for (let each = 0; each + 1 < offset.length; each++)
    for (let hop = offset[each]; hop < offset[each + 1]; hop++) flow[next[end[hop]]++] = each;
  return { first, flow };
}
