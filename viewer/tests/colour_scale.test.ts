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
  const [red, green, blue] = linear(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** How the three kinds of colour blindness see linear RGB: Machado, Oliveira and Fernandes (2009), severity 1. */
const BLINDNESS: Record<string, number[][]> = {
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function linear(colour: string): number[] {
  const hex = /^#(..)(..)(..)$/
    .exec(colour)
    ?.slice(1)
    .map((band) => Number.parseInt(band, 16));
  const bands = (hex ?? (colour.match(/\d+/g) ?? []).map(Number)).map((band) => band / 255);
  return bands.map((band) => (band <= 0.04045 ? band / 12.92 : ((band + 0.055) / 1.055) ** 2.4));
}

/** Return the lightness L* (CIE 1976) of a relative luminance. */
function lightness(level: number): number {
  return level > 0.008856 ? 116 * Math.cbrt(level) - 16 : 903.3 * level;
}

for (const [name, { ramp, ground, idle }] of Object.entries(THEMES))
  test(`the ${name} ramp begins near the ground, and is even for the colour-blind`, () => {
    const from = (colour: string): number => Math.abs(lightness(luminance(colour)) - lightness(luminance(ground)));
    assert.ok(from(ramp[0]) < 20, `the low end is ${from(ramp[0])} from the ground`);
    assert.ok(from(ramp[0]) > from(idle), "a used link recedes behind idle ones");
    assert.ok(from(ramp[STEPS - 1]) > 80, `the high end is ${from(ramp[STEPS - 1])} from the ground`);
    for (const [kind, matrix] of Object.entries(BLINDNESS)) {
      const seen = ramp.map((colour) => {
        const bands = matrix.map((row) => row.reduce((sum, part, at) => sum + part * linear(colour)[at], 0));
        const [red, green, blue] = bands.map((band) => Math.min(Math.max(band, 0), 1));
        return lightness(0.2126 * red + 0.7152 * green + 0.0722 * blue);
      });
      const direction = Math.sign(seen[STEPS - 1] - seen[0]);
      for (let step = 8; step < STEPS; step++)
        assert.ok(direction * (seen[step] - seen[step - 8]) > 3, `${kind}, step ${step}`);
    }
  });

for (const [name, { ramp }] of Object.entries(THEMES))
  test(`the ${name} ramp is monotonic in luminance`, () => {
    const levels = ramp.map(luminance);
    assert.equal(levels.length, STEPS);
    const direction = Math.sign(levels[STEPS - 1] - levels[0]);
    assert.equal(direction, name === "dark" ? 1 : -1);
    for (let step = 1; step < STEPS; step++)
      assert.ok(direction * (levels[step] - levels[step - 1]) > 0, `step ${step}`);
  });
