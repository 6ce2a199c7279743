// SPDX-License-Identifier: Apache-2.0
// Properties of links other than the bytes on them: delays, probabilities, speeds.

import { formatSeconds } from "../format";
import type { NumberArray } from "./arrays";

export interface LinkValue {
  name: string;
  /** `s`, `Gb/s`, or empty. */
  unit: string;
  /** The value of each link direction; NaN if the value is unknown, or if the link lacks this direction. */
  value: NumberArray;
}

export function formatValue({ unit }: LinkValue, value: number): string {
  if (Number.isNaN(value)) return "–";
  if (unit === "s") return formatSeconds(value);
  return `${Number(value.toPrecision(3))}${unit ? ` ${unit}` : ""}`;
}

/** Format the value of a link: one number, or two numbers if its directions differ. */
export function formatLinkValue(of: LinkValue, link: number): string {
  const [there, back] = [of.value[2 * link], of.value[2 * link + 1]];
  const same = there === back || Number.isNaN(back) || Number.isNaN(there);
  const one = Number.isNaN(there) ? back : there;
  return same ? formatValue(of, one) : `${formatValue(of, there)}, back ${formatValue(of, back)}`;
}

/** Return 1 for each link direction that has values while the opposite direction has none. */
export function findSimplex(values: LinkValue[], links: number): Uint8Array {
  const simplex = new Uint8Array(2 * links);
  for (let end = 0; end < simplex.length; end++) {
    const hasValue = (at: number): boolean => values.some(({ value }) => !Number.isNaN(value[at]));
    simplex[end] = hasValue(end) && !hasValue(end ^ 1) ? 1 : 0;
  }
  return simplex;
}
