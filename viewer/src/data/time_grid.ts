// SPDX-License-Identifier: Apache-2.0
// Bytes, time in MPI and regions in a grid: ranks are rows, and bins of time are columns.

import type { NumberArray } from "./arrays";
import { lazy } from "./cache";
import type { Intervals } from "./model";
import { overlap } from "./timeline";

export const NO_REGION = -1;

/** Regions of the cells, as indices of `order`; `NO_REGION` if none was recorded. */
export interface CellRegions {
  at: Int16Array;
  /** Regions sorted by the time that ranks spent in them, descending. */
  order: number[];
}

/** A grid whose rows are ranks, or groups of consecutive ranks, and whose columns are time bins of equal length. */
export class TimeGrid {
  readonly rows: number;
  readonly ranksInRow: number;
  /** Bytes sent by each cell: [row * bins + bin]. */
  readonly bytes = lazy(() => this.sum(this.intervals, this.intervals.bytes));
  /** Share of each cell's time that is inside MPI calls; null if not recorded. */
  readonly insideParts = lazy(() => this.findInsideParts());
  /** For each cell, the region in which its ranks spent the most time; null if no visits were recorded. */
  readonly regions = lazy(() => this.findRegions());

  constructor(
    private readonly intervals: Intervals,
    readonly seconds: number,
    readonly ranks: number,
    readonly bins: number,
    mostRows: number,
  ) {
    this.ranksInRow = Math.max(1, Math.ceil(ranks / mostRows));
    this.rows = Math.ceil(ranks / this.ranksInRow);
  }

  /** Return the first and the last rank of a row. */
  ranksOf(row: number): [number, number] {
    return [row * this.ranksInRow, Math.min(this.ranks, (row + 1) * this.ranksInRow) - 1];
  }

  private sum(
    { rank, begin, end }: { rank: NumberArray; begin: NumberArray; end: NumberArray },
    amount: NumberArray,
    target = new Float64Array(this.rows * this.bins),
    isIncluded: (interval: number) => boolean = () => true,
  ): Float64Array {
    const width = this.seconds / this.bins || 1;
    const binAt = (moment: number): number => Math.max(0, Math.min(this.bins - 1, Math.floor(moment / width)));
    for (let at = 0; at < rank.length; at++) {
      if (rank[at] < 0 || rank[at] >= this.ranks || !isIncluded(at)) continue;
      const row = Math.floor(rank[at] / this.ranksInRow) * this.bins;
      const last = binAt(end[at]);
      for (let bin = binAt(begin[at]); bin <= last; bin++)
        target[row + bin] +=
          amount[at] * overlap(begin[at], end[at], bin * width, (bin + 1) * width, bin === this.bins - 1);
    }
    return target;
  }

  private findInsideParts(): Float64Array | null {
    const { inside } = this.intervals;
    if (!inside) return null;
    const parts = this.sum(inside, inside.seconds);
    const width = this.seconds / this.bins || 1;
    for (let row = 0; row < this.rows; row++) {
      const [first, last] = this.ranksOf(row);
      const most = width * (last - first + 1);
      for (let bin = 0; bin < this.bins; bin++)
        parts[row * this.bins + bin] = Math.min(1, parts[row * this.bins + bin] / most);
    }
    return parts;
  }

  private findRegions(): CellRegions | null {
    const { visits } = this.intervals;
    if (!visits) return null;
    const lengths = new Float64Array(visits.rank.length);
    const total = new Float64Array(visits.names.length);
    for (let visit = 0; visit < lengths.length; visit++) {
      lengths[visit] = visits.end[visit] - visits.begin[visit];
      total[visits.region[visit]] += lengths[visit];
    }
    const order = [...total.keys()]
      .filter((region) => total[region] > 0)
      .sort((one, other) => total[other] - total[one] || one - other);
    const at = new Int16Array(this.rows * this.bins).fill(NO_REGION);
    const longest = new Float64Array(at.length);
    const own = new Float64Array(at.length);
    order.forEach((region, place) => {
      own.fill(0);
      this.sum(visits, lengths, own, (visit) => visits.region[visit] === region);
      for (let cell = 0; cell < at.length; cell++)
        if (own[cell] > longest[cell]) [longest[cell], at[cell]] = [own[cell], place];
    });
    return { at, order };
  }
}

/** Return at most `most` round times, for the ticks of an axis. */
export function axisTicks(seconds: number, most: number): number[] {
  if (!(seconds > 0)) return [0];
  const least = seconds / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least) ?? least;
  return Array.from({ length: Math.floor(seconds / step + 1e-9) + 1 }, (_, at) => at * step);
}

/** Return at most `most` whole hours of the day, for the ticks of an axis, in seconds since `began` (Unix time). */
export function hourTicks(began: number, seconds: number, most: number): number[] {
  const step =
    3600 *
    ([1, 2, 3, 6, 12, 24].find((hours) => seconds <= 3600 * hours * most) ?? 24 * Math.ceil(seconds / 86400 / most));
  const first = Math.ceil(began / step) * step - began;
  return Array.from({ length: Math.max(0, Math.floor((seconds - first) / step) + 1) }, (_, at) => first + at * step);
}
