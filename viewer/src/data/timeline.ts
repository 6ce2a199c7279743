// SPDX-License-Identifier: Apache-2.0
// Traffic over time: what ranks sent in each interval, and the part of each flow that falls into a span of time.

import type { Flows, Intervals } from "./document";

export class Timeline {
  readonly seconds: number;
  private readonly groupRanks: number;
  private readonly groups: number;
  private readonly ranks: number;

  constructor(private readonly intervals: Intervals) {
    let [seconds, group, ranks] = [0, 1, 0];
    for (let row = 0; row < intervals.rank.length; row++) {
      seconds = Math.max(seconds, intervals.end[row]);
      ranks = Math.max(ranks, intervals.rank[row] + 1, intervals.lastPeer[row] + 1);
      if (intervals.firstPeer[row] >= 0)
        group = Math.max(group, intervals.lastPeer[row] - intervals.firstPeer[row] + 1);
    }
    this.seconds = seconds;
    this.groupRanks = group;
    this.ranks = ranks;
    this.groups = Math.ceil(ranks / group);
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

  private cell(rank: number, peer: number): number {
    return rank * this.groups + Math.floor(peer / this.groupRanks);
  }
}

/** The part of an interval that is in a span; an interval without length is in it or not. */
function overlap(begin: number, end: number, from: number, to: number, closed: boolean): number {
  if (end <= begin) return begin >= from && (begin < to || (closed && begin <= to)) ? 1 : 0;
  return Math.max(0, Math.min(end, to) - Math.max(begin, from)) / (end - begin);
}
