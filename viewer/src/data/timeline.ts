// SPDX-License-Identifier: Apache-2.0
// Traffic over time: what ranks sent in each interval, and the part of each flow that falls into a span of time.

import type { Flows, Intervals, Small } from "./document";

/** How the peers of a job's ranks are put into groups: of equal size, from its first rank. */
interface Grouping {
  firstRank: number;
  size: number;
}

export class Timeline {
  readonly seconds: number;
  /** Of each job that has intervals. */
  private readonly grouping = new Map<number, Grouping>();
  private readonly groups: number;
  private readonly ranks: number;

  /** `jobOf`: the job of each rank. */
  constructor(
    private readonly intervals: Intervals,
    readonly jobOf: Small,
  ) {
    const { rank, end, firstPeer, lastPeer } = intervals;
    let [seconds, ranks] = [0, jobOf.length];
    const firstRank = new Map<number, number>();
    for (let each = ranks - 1; each >= 0; each--) firstRank.set(jobOf[each], each);
    for (let row = 0; row < rank.length; row++) {
      seconds = Math.max(seconds, end[row]);
      ranks = Math.max(ranks, rank[row] + 1, lastPeer[row] + 1);
      const job = jobOf[rank[row]];
      const size = firstPeer[row] >= 0 ? lastPeer[row] - firstPeer[row] + 1 : 1;
      const known = this.grouping.get(job);
      if (known) known.size = Math.max(known.size, size);
      else this.grouping.set(job, { firstRank: firstRank.get(job) ?? 0, size });
    }
    this.seconds = seconds;
    this.ranks = ranks;
    const count = ({ firstRank: first, size }: Grouping): number => Math.ceil((ranks - first) / size);
    this.groups = [...this.grouping.values()].reduce((most, each) => Math.max(most, count(each)), 1);
  }

  /** The jobs that have intervals. */
  get jobs(): number[] {
    return [...this.grouping.keys()].sort((one, other) => one - other);
  }

  /** Bytes of each of `bins` spans of equal length, of some ranks or all. */
  bins(count: number, among: (rank: number) => boolean): Float64Array {
    const sums = new Float64Array(count);
    const width = this.seconds / count || 1;
    const { rank, begin, end, bytes } = this.intervals;
    for (let row = 0; row < rank.length; row++) {
      if (!among(rank[row])) continue;
      const first = Math.min(count - 1, Math.floor(begin[row] / width));
      const last = Math.min(count - 1, Math.floor(end[row] / width));
      for (let bin = first; bin <= last; bin++)
        sums[bin] += bytes[row] * overlap(begin[row], end[row], bin * width, (bin + 1) * width, bin === last);
    }
    return sums;
  }

  /** The part of each flow, from 0 to 1, that its rank's intervals say was sent from one moment to another. */
  parts(flows: Flows, from: number, to: number): Float64Array {
    const within = new Float64Array(this.ranks * this.groups);
    const total = new Float64Array(this.ranks * this.groups);
    const { rank, begin, end, firstPeer, bytes } = this.intervals;
    for (let row = 0; row < rank.length; row++) {
      if (firstPeer[row] < 0) continue;
      const cell = this.cell(rank[row], firstPeer[row]);
      total[cell] += bytes[row];
      within[cell] += bytes[row] * overlap(begin[row], end[row], from, to, to >= this.seconds);
    }
    const parts = new Float64Array(flows.count);
    for (let flow = 0; flow < flows.count; flow++) {
      const source = flows.sourceRank[flow];
      const destination = flows.destinationRank[flow];
      if (source < 0 || destination < 0 || source >= this.ranks || destination >= this.ranks) continue;
      // What was fetched was noted by the one that received it.
      const sent = this.cell(source, destination);
      const cell = total[sent] ? sent : this.cell(destination, source);
      if (total[cell]) parts[flow] = within[cell] / total[cell];
    }
    return parts;
  }

  /** Of a rank and the group that a peer is in; below 0 where nobody noted it. */
  private cell(rank: number, peer: number): number {
    const grouping = this.grouping.get(this.jobOf[rank]);
    if (!grouping || peer < grouping.firstRank) return -1;
    const group = Math.floor((peer - grouping.firstRank) / grouping.size);
    return group < this.groups ? rank * this.groups + group : -1;
  }
}

/** The part of an interval that is in a span; an interval without length is in it or not. */
function overlap(begin: number, end: number, from: number, to: number, closed: boolean): number {
  if (end <= begin) return begin >= from && (begin < to || (closed && begin <= to)) ? 1 : 0;
  return Math.max(0, Math.min(end, to) - Math.max(begin, from)) / (end - begin);
}
