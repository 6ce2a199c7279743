// SPDX-License-Identifier: Apache-2.0
// Colour scales: linear, logarithmic and diverging, by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeScale, LoadScale } from "../src/pictures/colour_scale";
import { STEPS, THEMES } from "../src/pictures/palette";

function near(value: number, expected: number): void {
  assert.ok(Math.abs(value - expected) <= 1e-9 * Math.max(1, Math.abs(expected)), `${value} is not ${expected}`);
}

test("a linear scale begins at 0", () => {
  const scale = new LoadScale(20, 200, false);
  assert.deepEqual(scale.ends, [0, 200]);
  near(scale.part(50), 0.25);
  near(scale.amount(0.25), 50);
  assert.deepEqual([scale.step(0), scale.step(200), scale.step(999)], [0, STEPS - 1, STEPS - 1]);
  assert.deepEqual([scale.weight(0), scale.weight(STEPS - 1)], [0, 1]);
});

test("a logarithmic scale begins at the smallest amount", () => {
  const scale = new LoadScale(1, 10_000, true);
  assert.deepEqual(scale.ends, [1, 10_000]);
  near(scale.part(100), 0.5);
  near(scale.amount(0.75), 1000);
  near(scale.part(0.5), 0);
  near(new LoadScale(5, 5, true).part(5), 1);
});

test("a scale of no amounts has one colour", () => {
  assert.equal(new LoadScale(0, 0, false).step(0), 0);
  assert.equal(new LoadScale(0, 0, true).part(0), 0);
});

test("a diverging scale is symmetric about 0", () => {
  const scale = new ChangeScale(10, 100, false);
  assert.deepEqual(scale.ends, [-100, 100]);
  near(scale.part(0), 0.5);
  near(scale.part(-50), 0.25);
  near(scale.part(50), 0.75);
  near(scale.amount(0.25), -50);
  near(scale.amount(0.5), 0);
  near(scale.weight(0), 1);
  near(scale.weight(STEPS - 1), 1);
  near(new ChangeScale(1, 100, true).part(-10), 0.25);
});

/** Return the relative luminance of a colour (WCAG 2.1). */
function luminance(colour: string): number {
  const bands = (colour.match(/\d+/g) ?? []).map((band) => Number(band) / 255);
  const [red, green, blue] = bands.map((band) => (band <= 0.04045 ? band / 12.92 : ((band + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

for (const [name, { ramp }] of Object.entries(THEMES))
  test(`the ${name} ramp is monotonic in luminance`, () => {
    const levels = ramp.map(luminance);
    assert.equal(levels.length, STEPS);
    const direction = Math.sign(levels[STEPS - 1] - levels[0]);
    assert.equal(direction, name === "dark" ? 1 : -1);
    for (let step = 1; step < STEPS; step++)
      assert.ok(direction * (levels[step] - levels[step - 1]) > 0, `step ${step}`);
  });
