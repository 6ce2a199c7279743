// SPDX-License-Identifier: Apache-2.0
// Quantities and names as people read them: as ibprof/show.py writes them.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

export function formatBytes(amount: number): string {
  let power = 0;
  let value = amount;
  while (value >= 999.5 && power < PREFIXES.length - 1) {
    value /= 1000;
    power++;
  }
  return `${Number(value.toPrecision(3))} ${PREFIXES[power]}B`;
}

/** A difference, with its sign. */
export function formatChange(amount: number): string {
  return `${amount > 0 ? "+" : amount < 0 ? "−" : ""}${formatBytes(Math.abs(amount))}`;
}

/** What became of an amount, as a part of what it was. */
export function sayRelative(before: bigint, after: bigint): string {
  if (!before) return "new";
  const percent = (Number(after - before) / Number(before)) * 100;
  const size = Math.abs(percent) < 999.5 ? Math.abs(percent).toFixed(1) : Math.abs(percent).toPrecision(3);
  return `${percent < 0 ? "−" : "+"}${Number(size)} %`;
}

/** A share of 0 to 1. */
export function formatPercent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

/** A difference of shares, in points of a hundred. */
export function formatPoints(share: number): string {
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${Number((Math.abs(share) * 100).toPrecision(3))} points`;
}

export function formatSeconds(seconds: number): string {
  for (const [limit, factor, unit] of [
    [1e-6, 1e9, "ns"],
    [1e-3, 1e6, "us"],
    [1, 1e3, "ms"],
  ] as const)
    if (seconds < limit) return `${Number((seconds * factor).toPrecision(3))} ${unit}`;
  return `${Number(seconds.toPrecision(3))} s`;
}

export function formatShare(part: bigint, whole: bigint): string {
  return whole ? `${(Number((part * 10000n) / whole) / 100).toFixed(1)} %` : "0.0 %";
}

export function formatCount(amount: bigint): string {
  return amount.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Spells out what cannot be seen, or turns what follows round. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);
}
