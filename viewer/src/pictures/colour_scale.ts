// SPDX-License-Identifier: Apache-2.0
// Scales from amounts to colours: of loads and of changes, linear or logarithmic.

import { STEPS } from "./palette";

/** Maps amounts to positions on a scale and to colours, and positions to amounts. */
export interface ColourScale {
  /** The smallest and the largest magnitude other than 0. */
  readonly least: number;
  readonly most: number;
  readonly logarithmic: boolean;
  /** The amounts at both ends of the scale. */
  readonly ends: [number, number];
  /** Return the position of an amount, from 0 to 1. */
  part(amount: number): number;
  /** Return the amount at a position. */
  amount(part: number): number;
  /** Return the index of an amount's colour. */
  step(amount: number): number;
  /** Return the emphasis (0 to 1) of the colour with index `step`. */
  weight(step: number): number;
}

/** A sequential scale: linear from 0, or logarithmic from the smallest amount. */
export class LoadScale implements ColourScale {
  constructor(
    readonly least: number,
    readonly most: number,
    readonly logarithmic: boolean,
  ) {}

  get ends(): [number, number] {
    return [this.logarithmic ? this.least : 0, this.most];
  }

  part(amount: number): number {
    if (this.most <= 0) return 0;
    const part = !this.logarithmic
      ? amount / this.most
      : this.most > this.least
        ? Math.log(amount / this.least) / Math.log(this.most / this.least)
        : 1;
    return Math.max(0, Math.min(1, part));
  }

  amount(part: number): number {
    return this.logarithmic ? this.least * (this.most / this.least) ** part : this.most * part;
  }

  step(amount: number): number {
    return Math.round(this.part(amount) * (STEPS - 1));
  }

  weight(step: number): number {
    return step / (STEPS - 1);
  }
}

/** A diverging scale of changes: 0 is in the middle, and opposite changes are equally far from the middle. */
export class ChangeScale implements ColourScale {
  private readonly magnitudes: LoadScale;

  constructor(
    readonly least: number,
    readonly most: number,
    readonly logarithmic: boolean,
  ) {
    this.magnitudes = new LoadScale(least, most, logarithmic);
  }

  get ends(): [number, number] {
    return [-this.most, this.most];
  }

  part(amount: number): number {
    return amount ? 0.5 + (Math.sign(amount) * this.magnitudes.part(Math.abs(amount))) / 2 : 0.5;
  }

  amount(part: number): number {
    const size = Math.abs(2 * part - 1);
    return size ? Math.sign(part - 0.5) * this.magnitudes.amount(size) : 0;
  }

  step(amount: number): number {
    return Math.round(this.part(amount) * (STEPS - 1));
  }

  weight(step: number): number {
    return Math.abs(2 * (step / (STEPS - 1)) - 1);
  }
}
