// SPDX-License-Identifier: Apache-2.0
// An index of the flows on each link direction, which is faster than a search of all paths.

import type { FlowPaths } from "./routes";

/** The flows on link direction e are `flow[first[e] .. first[e + 1]]`, ascending. */
export interface FlowIndex {
  first: Uint32Array;
  flow: Uint32Array;
}

export function indexFlows({ offset, end }: FlowPaths, ends: number): FlowIndex {
  const first = new Uint32Array(ends + 1);
  for (const each of end) first[each + 1]++;
  for (let each = 0; each < ends; each++) first[each + 1] += first[each];
  const next = first.slice();
  const flow = new Uint32Array(end.length);
  for (let each = 0; each + 1 < offset.length; each++)
    for (let hop = offset[each]; hop < offset[each + 1]; hop++) flow[next[end[hop]]++] = each;
  return { first, flow };
}

/** Search all paths for the flows on one link direction. A single search is faster than building the index. */
export function searchFlows({ offset, end: ends }: FlowPaths, end: number): Uint32Array {
  const found: number[] = [];
  for (let flow = 0; flow + 1 < offset.length; flow++)
    for (let hop = offset[flow]; hop < offset[flow + 1]; hop++) if (ends[hop] === end) found.push(flow);
  return Uint32Array.from(found);
}
