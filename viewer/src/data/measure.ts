// SPDX-License-Identifier: Apache-2.0
// Measures of amounts: bytes, shares of a run's bytes, and the time of a link direction at line rate.

import { formatByteChange, formatBytes, formatPercent, formatPoints, formatSeconds } from "../format";
import { Amounts } from "./amounts";
import type { Model } from "./model";

/** Shares and seconds are stored as integers in units of 10^-12, so that sums are exact. */
const WHOLE = 1e12;

export interface Measure {
  readonly isShare: boolean;
  /** Name of the measure in the legend of colours. */
  readonly title: string;
  /** Convert bytes of a run to this measure. */
  convert(bytes: Amounts, run: Model): Amounts;
  format(amount: number): string;
  formatChange(amount: number): string;
}

export const BYTES: Measure = {
  isShare: false,
  title: "bytes",
  convert: (bytes) => bytes,
  format: formatBytes,
  formatChange: formatByteChange,
};

/** Shares of the bytes that the whole run, not only the selection, puts on links. */
export const SHARES: Measure = {
  isShare: true,
  title: "share of the run's bytes",
  convert: scaleBy(({ header }) => {
    const whole = Number(header.bytes_routed) || 1;
    return () => WHOLE / whole;
  }),
  format: (amount) => formatPercent(amount / WHOLE),
  formatChange: (amount) => formatPoints(amount / WHOLE),
};

/** Time of each link direction at line rate. A link of unknown speed is assumed to be as fast as the fastest link. */
export const TIMES: Measure = {
  isShare: false,
  title: "time at line rate of the bytes",
  convert: scaleBy((run) => {
    const times = timesPerByte(run);
    return (end) => WHOLE * times[end >> 1];
  }),
  format: (amount) => formatSeconds(amount / WHOLE),
  formatChange: (amount) => `${amount > 0 ? "+" : amount < 0 ? "−" : ""}${formatSeconds(Math.abs(amount) / WHOLE)}`,
};

/** Return each link's seconds per byte. A link of unknown speed is assumed to be as fast as the fastest link. */
export function timesPerByte({ linkGbps }: Model): Float64Array {
  let fastest = 0;
  for (let link = 0; link < linkGbps.length; link++) if (linkGbps[link] > fastest) fastest = linkGbps[link];
  return Float64Array.from(linkGbps, (gbps) => 8e-9 / (gbps > 0 ? gbps : fastest || 1));
}

/** Return a conversion that multiplies amounts by the run's factor for their index, and caches results. */
function scaleBy(factorsOf: (run: Model) => (index: number) => number): Measure["convert"] {
  const cache = new WeakMap<Amounts, Amounts>();
  return (bytes, run) => {
    const cached = cache.get(bytes);
    if (cached) return cached;
    const factor = factorsOf(run);
    const scaled = new Amounts(bytes.length);
    for (let index = 0; index < scaled.length; index++)
      scaled.add(index, Math.round(bytes.approximate(index) * factor(index)), 0);
    cache.set(bytes, scaled);
    return scaled;
  };
}
