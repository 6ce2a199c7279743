// SPDX-License-Identifier: Apache-2.0
// Text of quantities and names, in the form that reports print.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
/** An amount from 999.5 on is rounded to 1 of the next unit. */
const ROUNDS_UP = 999.5;

export function formatBytes(amount: number): string {
  let power = 0;
  let value = amount;
  while (value >= ROUNDS_UP && power < PREFIXES.length - 1) {
    value /= 1000;
    power++;
  }
  return `${Number(value.toPrecision(3))} ${PREFIXES[power]}B`;
}

/** Format a change of bytes, with its sign. */
export function formatByteChange(amount: number): string {
  return `${amount > 0 ? "+" : amount < 0 ? "−" : ""}${formatBytes(Math.abs(amount))}`;
}

/** Format a change relative to the amount before. */
export function formatRelative(before: bigint, after: bigint): string {
  if (!before) return "new";
  const percent = (Number(after - before) / Number(before)) * 100;
  const size = Number(Math.abs(percent) < ROUNDS_UP ? Math.abs(percent).toFixed(1) : Math.abs(percent).toPrecision(3));
  return size ? `${percent < 0 ? "−" : "+"}${size}%` : "0%";
}

/** Format a share from 0 to 1. */
export function formatPercent(share: number): string {
  return `${Number((share * 100).toPrecision(3))}%`;
}

/** Format a change of shares, in percentage points. */
export function formatPoints(share: number): string {
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${Number((Math.abs(share) * 100).toPrecision(3))} points`;
}

export function formatSeconds(seconds: number): string {
  for (const [factor, unit] of [
    [1e9, "ns"],
    [1e6, "µs"],
    [1e3, "ms"],
  ] as const)
    if (seconds * factor < ROUNDS_UP) return `${Number((seconds * factor).toPrecision(3))} ${unit}`;
  return `${Number(seconds.toPrecision(3))} s`;
}

export function formatShare(part: bigint, whole: bigint): string {
  const share = whole ? (Number((part * 10000n) / whole) / 100).toFixed(1) : "0.0";
  // A share above 0 is never shown as 0.0%.
  return part && whole && share === "0.0" ? "<0.1%" : `${share}%`;
}

export function formatCount(amount: bigint): string {
  return amount.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Escape characters that are invisible or that change the direction of text. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);
}
