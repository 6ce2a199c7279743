// SPDX-License-Identifier: Apache-2.0
// Text of quantities, by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../src/format";

test("bytes have three digits and a decimal prefix", () => {
  const expected: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [999.6, "1 kB"],
    [1234, "1.23 kB"],
    [999_499, "999 kB"],
    [999_500, "1 MB"],
    [2 ** 63, "9.22 EB"],
    [5e21, "5000 EB"],
  ];
  for (const [amount, text] of expected) assert.equal(format.formatBytes(amount), text);
});

test("changes have a sign, also in percent and percentage points", () => {
  assert.equal(format.formatByteChange(-1500), "−1.5 kB");
  assert.equal(format.formatByteChange(1500), "+1.5 kB");
  assert.equal(format.formatByteChange(0), "0 B");
  assert.equal(format.formatRelative(0n, 5n), "new");
  assert.equal(format.formatRelative(9n, 12n), "+33.3%");
  assert.equal(format.formatRelative(12n, 9n), "−25%");
  assert.equal(format.formatRelative(1n, 23_456n), "+2350000%");
  assert.equal(format.formatRelative(10_000n, 9_999n), "0%");
  assert.equal(format.formatRelative(10_000n, 10_001n), "0%");
  assert.equal(format.formatPoints(-0.0123456), "−1.23 points");
  assert.equal(format.formatPercent(0.123456), "12.3%");
});

test("times get the unit that fits", () => {
  const expected: [number, string][] = [
    [0, "0 ns"],
    [2.5e-7, "250 ns"],
    [9.996e-7, "1 µs"],
    [1e-6, "1 µs"],
    [9.994e-4, "999 µs"],
    [9.996e-4, "1 ms"],
    [0.0123, "12.3 ms"],
    [1, "1 s"],
    [12345, "12300 s"],
  ];
  for (const [seconds, text] of expected) assert.equal(format.formatSeconds(seconds), text);
});

test("shares are exact for amounts that doubles cannot hold", () => {
  assert.equal(format.formatShare(1n, 3n), "33.3%");
  assert.equal(format.formatShare(5n, 0n), "0.0%");
  assert.equal(format.formatShare(0n, 9n), "0.0%");
  assert.equal(format.formatShare(1n, 9999n), "<0.1%");
  // Rounded to doubles, both amounts are 2^62, which would be 100.0%.
  assert.equal(format.formatShare(2n ** 62n - 2n ** 54n, 2n ** 62n), "99.6%");
  assert.equal(format.formatCount(1234567n), "1,234,567");
  assert.equal(format.formatCount(123n), "123");
});

test("invisible characters and changes of direction are escaped", () => {
  assert.equal(format.printable("host\u202e\u0007\n<b>"), "host\\u{202e}\\u{7}\\u{a}<b>");
  assert.equal(format.printable("a\u2028b\u2029"), "a\\u{2028}b\\u{2029}");
  assert.equal(format.printable("Zürich 節点"), "Zürich 節点");
});
