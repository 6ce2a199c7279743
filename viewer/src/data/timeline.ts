// SPDX-License-Identifier: Apache-2.0
// Traffic over time: bytes that ranks sent in each interval, and the share of each flow within a time range.

import type { NumberArray } from "./arrays";
import type { Flows, Intervals } from "./model";

/** Divides a job's ranks, from `firstRank` on, into groups of `size` successive ranks: the groups of peers. */
interface Grouping {
  firstRank: number;
  size: number;
}

export class Timeline {
  readonly seconds: number;
  /** Job -> its groups of peers; jobs without intervals are missing. */
  private readonly grouping = new Map<number, Grouping>();
  private readonly groups: number;
  private readonly ranks: number;

  /** `jobOf`: [rank], the rank's job; if intervals have jobs instead of ranks, [job], the job itself. */
  constructor(
    readonly intervals: Intervals,
    readonly jobOf: NumberArray,
    readonly isByJob = false,
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
    for (const each of intervals.inside?.end ?? []) seconds = Math.max(seconds, each);
    this.seconds = seconds;
    this.ranks = ranks;
    const count = ({ firstRank: first, size }: Grouping): number => Math.ceil((ranks - first) / size);
    this.groups = [...this.grouping.values()].reduce((most, each) => Math.max(most, count(each)), 1);
  }

  /** Return the jobs that have intervals. */
  get jobs(): number[] {
    return [...this.grouping.keys()].sort((one, other) => one - other);
  }

  /** Return the bytes sent in each of `count` bins of equal length, by the ranks that `isIncluded` accepts. */
  bins(count: number, isIncluded: (rank: number) => boolean): Float64Array {
    const sums = new Float64Array(count);
    const width = this.seconds / count || 1;
    const { rank, begin, end, bytes } = this.intervals;
    for (let row = 0; row < rank.length; row++) {
      if (!isIncluded(rank[row])) continue;
      const first = Math.min(count - 1, Math.floor(begin[row] / width));
      const last = Math.min(count - 1, Math.floor(end[row] / width));
      for (let bin = first; bin <= last; bin++)
        sums[bin] += bytes[row] * overlap(begin[row], end[row], bin * width, (bin + 1) * width, bin === last);
    }
    return sums;
  }

  /** For each bin, return the share of time in MPI calls, for accepted ranks (`isIncluded`); null if not recorded. */
  insideParts(count: number, isIncluded: (rank: number) => boolean): Float64Array | null {
    const { inside } = this.intervals;
    if (!inside) return null;
    const parts = new Float64Array(count);
    const width = this.seconds / count || 1;
    const ranks = new Set<number>();
    for (let row = 0; row < inside.rank.length; row++) {
      if (!isIncluded(inside.rank[row])) continue;
      ranks.add(inside.rank[row]);
      const last = Math.min(count - 1, Math.floor(inside.end[row] / width));
      for (let bin = Math.min(count - 1, Math.floor(inside.begin[row] / width)); bin <= last; bin++)
        parts[bin] +=
          inside.seconds[row] *
          overlap(inside.begin[row], inside.end[row], bin * width, (bin + 1) * width, bin === count - 1);
    }
    return parts.map((part) => Math.min(1, part / (width * ranks.size || 1)));
  }

  /** For each flow, estimate the share (0 to 1) that was sent in a time range, by the intervals of the flow's pair. */
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
    const [sources, destinations] = this.isByJob ? [flows.job, flows.job] : [flows.sourceRank, flows.destinationRank];
    for (let flow = 0; flow < flows.count; flow++) {
      const source = sources[flow];
      const destination = destinations[flow];
      if (source < 0 || destination < 0 || source >= this.ranks || destination >= this.ranks) continue;
      // If the receiver fetched the bytes (one-sided communication), the receiver recorded them.
      const sent = this.cell(source, destination);
      const cell = total[sent] ? sent : this.cell(destination, source);
      if (total[cell]) parts[flow] = within[cell] / total[cell];
    }
    return parts;
  }

  /** Return the index of (rank, peer's group); negative if the rank's job lacks intervals or this group. */
  private cell(rank: number, peer: number): number {
    const grouping = this.grouping.get(this.jobOf[rank]);
    if (!grouping || peer < grouping.firstRank) return -1;
    const group = Math.floor((peer - grouping.firstRank) / grouping.size);
    return group < this.groups ? rank * this.groups + group : -1;
  }
}

/** Return the share of an interval that is within a time range; for an empty interval, 1 if it is within, else 0. */
export function overlap(begin: number, end: number, from: number, to: number, closed: boolean): number {
  if (end <= begin) return begin >= from && (begin < to || (closed && begin <= to)) ? 1 : 0;
  return Math.max(0, Math.min(end, to) - Math.max(begin, from)) / (end - begin);
}
