// SPDX-License-Identifier: Apache-2.0
// What amounts of two runs are held against one another by: their bytes, or each as a share of its own run.

import { formatBytes, formatChange, formatPercent, formatPoints } from "../show";
import { Amounts } from "./amounts";
import type { Model } from "./document";

/** Shares are in parts of so many: whole numbers, as bytes are. */
const WHOLE = 1e12;

export interface Measure {
  readonly isShare: boolean;
  /** What stands for bytes of a run. */
  of(bytes: Amounts, run: Model): Amounts;
  say(amount: number): string;
  sayChange(amount: number): string;
}

export const BYTES: Measure = {
  isShare: false,
  of: (bytes) => bytes,
  say: formatBytes,
  sayChange: formatChange,
};

/** Shares of amounts that were asked for before: a picture and its lists ask for the same ones. */
const known = new WeakMap<Amounts, Amounts>();

/** Of all bytes that the run has on links, whatever of them is chosen. */
export const SHARES: Measure = {
  isShare: true,
  of: (bytes, { header }) => {
    const made = known.get(bytes) ?? new Amounts(bytes.length);
    if (known.has(bytes)) return made;
    const whole = Number(header.bytes_routed) || 1;
    for (let index = 0; index < made.length; index++)
      made.add(index, Math.round((bytes.rough(index) / whole) * WHOLE), 0);
    known.set(bytes, made);
    return made;
  },
  say: (amount) => formatPercent(amount / WHOLE),
  sayChange: (amount) => formatPoints(amount / WHOLE),
};
