// SPDX-License-Identifier: Apache-2.0
// Space between the items of a row, so that none covers another.

/**
 * Return positions that are as near as possible to `wanted` (ascending), but at least `gaps` apart and within `width`.
 * `gaps[at]` is the gap between items at - 1 and at. If there is too little space, return `wanted`.
 */
export function separate(wanted: readonly number[], gaps: readonly number[], width: number): number[] {
  let total = 0;
  const before = wanted.map((_, at) => {
    if (at) total += gaps[at];
    return total;
  });
  if (total > width) return [...wanted];
  // Subtract the gaps, so that positions must only ascend. Replace positions that do not ascend by their mean.
  const pools: { sum: number; count: number }[] = [];
  wanted.forEach((place, at) => {
    let pool = { sum: place - before[at], count: 1 };
    for (let last = pools.pop(); last; last = pools.pop()) {
      if (last.sum / last.count <= pool.sum / pool.count) {
        pools.push(last);
        break;
      }
      pool = { sum: last.sum + pool.sum, count: last.count + pool.count };
    }
    pools.push(pool);
  });
  const means = pools.flatMap(({ sum, count }) => new Array<number>(count).fill(sum / count));
  return means.map((mean, at) => Math.min(Math.max(mean, 0), width - total) + before[at]);
}
