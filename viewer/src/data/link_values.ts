// SPDX-License-Identifier: Apache-2.0
// What is known of links beside the bytes on them: delays, how sure they are, speeds.

import { formatSeconds } from "../show";
import type { Small } from "./document";

export interface LinkValue {
  name: string;
  /** `s`, `Gb/s`, or nothing. */
  unit: string;
  /** Of each link end, what holds from there to the other one; NaN where nothing is known, or nothing leads there. */
  value: Small;
}

export function formatValue({ unit }: LinkValue, value: number): string {
  if (Number.isNaN(value)) return "–";
  if (unit === "s") return formatSeconds(value);
  return `${Number(value.toPrecision(3))}${unit ? ` ${unit}` : ""}`;
}

/** In words: one value, or one for each direction. */
export function sayValue(of: LinkValue, link: number): string {
  const [there, back] = [of.value[2 * link], of.value[2 * link + 1]];
  const same = there === back || Number.isNaN(back) || Number.isNaN(there);
  const one = Number.isNaN(there) ? back : there;
  return same ? formatValue(of, one) : `${formatValue(of, there)}, back ${formatValue(of, back)}`;
}

/** Whether a link leads from one end alone: then no value says anything of the other direction. */
export function findSimplex(values: LinkValue[], links: number): Uint8Array {
  const simplex = new Uint8Array(2 * links);
  for (let end = 0; end < simplex.length; end++) {
    const said = (at: number): boolean => values.some(({ value }) => !Number.isNaN(value[at]));
    simplex[end] = said(end) && !said(end ^ 1) ? 1 : 0;
  }
  return simplex;
}
