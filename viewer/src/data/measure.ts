// SPDX-License-Identifier: Apache-2.0
// What two runs are compared by: their bytes, or each amount as a share of its own run.

import { formatByteChange, formatBytes, formatPercent, formatPoints } from "../format";
import { Amounts } from "./amounts";
import type { Model } from "./model";

/** A share is a whole number of parts of 10^12, so that it is exact as bytes are. */
const WHOLE = 1e12;

export interface Measure {
  readonly isShare: boolean;
  /** Convert bytes of a run to this measure. */
  convert(bytes: Amounts, run: Model): Amounts;
  format(amount: number): string;
  formatChange(amount: number): string;
}

export const BYTES: Measure = {
  isShare: false,
  convert: (bytes) => bytes,
  format: formatBytes,
  formatChange: formatByteChange,
};

/** Shares computed before: a picture and its lists ask for the same ones. */
const cache = new WeakMap<Amounts, Amounts>();

/** Shares of all bytes that the run has on links, whatever the selection. */
export const SHARES: Measure = {
  isShare: true,
  convert: (bytes, { header }) => {
    const cached = cache.get(bytes);
    if (cached) return cached;
    const shares = new Amounts(bytes.length);
    const whole = Number(header.bytes_routed) || 1;
    for (let index = 0; index < shares.length; index++)
      shares.add(index, Math.round((bytes.approximate(index) / whole) * WHOLE), 0);
    cache.set(bytes, shares);
    return shares;
  },
  format: (amount) => formatPercent(amount / WHOLE),
  formatChange: (amount) => formatPoints(amount / WHOLE),
};
