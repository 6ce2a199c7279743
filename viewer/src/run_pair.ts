// SPDX-License-Identifier: Apache-2.0
// The two shown runs of a file, and the measures of lists and colours.

import { BYTES, type Measure, SHARES, TIMES } from "./data/measure";
import type { Model } from "./data/model";
import type { State } from "./state";

/** Return the index of the run that lists show. */
export function runIndex(state: State): number {
  return state.run ?? 0;
}

/** Return the index of the compared run; by default the first run, or the second run if lists show the first. */
export function otherRunIndex(state: State): number {
  const run = runIndex(state);
  if (state.against !== undefined && state.against !== run) return state.against;
  return run ? 0 : 1;
}

/** Return the measure of a comparison; by default shares if the runs' numbers of ranks are known and differ. */
export function measureFor({ by }: State, one: Model, other: Model): Measure {
  const [ranks, others] = [countRanks(one), countRanks(other)];
  const differ = ranks > 0 && others > 0 && ranks !== others;
  return (by ?? (differ ? "share" : "bytes")) === "share" ? SHARES : BYTES;
}

/** Return the measure of colours: time at line rate, unless bytes or shares are selected or no speed is known. */
export function measureForColours(state: State, one: Model, other?: Model): Measure {
  const measure = other ? measureFor(state, one, other) : BYTES;
  return measure.isShare || state.by === "bytes" || !knowsSpeeds(one) ? measure : TIMES;
}

/** Return true if the speed of any link is known. */
export function knowsSpeeds({ linkGbps }: Model): boolean {
  return linkGbps.some((gbps) => gbps > 0);
}

function countRanks({ rankJob }: Model): number {
  let count = 0;
  for (const job of rankJob) if (job >= 0) count++;
  return count;
}
