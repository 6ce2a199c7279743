// SPDX-License-Identifier: Apache-2.0
// Colours of loads: even in lightness, for eyes that tell red from green badly too; on dark the order is turned round.

/** Viridis-like by lightness: light to dark on white, and dark to light on black, without a step back. */
const LIGHT = ["#fbd26a", "#f58c46", "#d94a6a", "#8a2a86", "#260c51"];
const DARK = ["#6f5ac0", "#a850b0", "#e2637f", "#fba35f", "#fdecab"];

/** Of differences: less, the same, more; blue and orange, which eyes of all kinds tell apart, and grey between. */
const LIGHT_CHANGE = ["#0b3c8c", "#3f7fc4", "#a9c3de", "#cfd2d6", "#e6bd84", "#c9731a", "#7d3c00"];
const DARK_CHANGE = ["#a8d1ff", "#5a9be6", "#39618f", "#4a4f57", "#8a6233", "#e0913a", "#ffd9a0"];

export const STEPS = 64;

export interface Theme {
  ramp: string[];
  /** Of differences. */
  change: string[];
  ground: string;
  idle: string;
  faded: string;
  node: string;
  job: string;
  text: string;
  chosen: string;
  pointed: string;
  /** Of jobs, where there are several: told apart by eyes of all kinds (Okabe and Ito). */
  jobs: string[];
  /** Of what the user told of nodes and ranks; no hue of the loads'. */
  values: string[];
}

export const THEMES: Record<"light" | "dark", Theme> = {
  light: {
    ramp: interpolate(LIGHT),
    change: interpolate(LIGHT_CHANGE),
    ground: "#ffffff",
    idle: "#e3e6ea",
    faded: "#d5d9df",
    node: "#8d96a3",
    job: "#0b5fae",
    text: "#3a4350",
    chosen: "#00806a",
    pointed: "#0b5fae",
    jobs: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00"],
    values: interpolate(["#cfe1f2", "#6aaed6", "#2070b4", "#08306b"]),
  },
  dark: {
    ramp: interpolate(DARK),
    change: interpolate(DARK_CHANGE),
    ground: "#14171c",
    idle: "#262b33",
    faded: "#343b46",
    node: "#6d7786",
    job: "#63b3ff",
    text: "#c6cdd7",
    chosen: "#3fe0bd",
    pointed: "#7cc0ff",
    jobs: ["#56b4e9", "#e69f00", "#2fc49a", "#cc79a7", "#4aa3e0", "#f07f2f", "#f0e442"],
    values: interpolate(["#1f3a5a", "#2f6ea8", "#6ab0e0", "#d3e8f8"]),
  },
};

function interpolate(stops: string[]): string[] {
  const rgb = stops.map((stop) => [1, 3, 5].map((at) => Number.parseInt(stop.slice(at, at + 2), 16)));
  return Array.from({ length: STEPS }, (_, index) => {
    const where = (index / (STEPS - 1)) * (stops.length - 1);
    const first = Math.min(Math.floor(where), stops.length - 2);
    const mixed = rgb[first].map((low, band) => Math.round(low + (rgb[first + 1][band] - low) * (where - first)));
    return `rgb(${mixed.join(",")})`;
  });
}

/** From amounts to colours, and back. */
export interface Scale {
  /** Of the sizes of all amounts that are not 0. */
  readonly least: number;
  readonly most: number;
  readonly logarithmic: boolean;
  /** What the two ends of the scale stand for. */
  readonly ends: [number, number];
  /** Where an amount is on the scale, from 0 to 1. */
  part(amount: number): number;
  /** The amount at a part of the scale. */
  amount(part: number): number;
  /** The number of an amount's colour. */
  step(amount: number): number;
  /** How much a step stands out, from 0 to 1. */
  weight(step: number): number;
}

/** Of amounts from 0 on. */
export class LoadScale implements Scale {
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

/** Of differences, from the greatest loss to the greatest gain: 0 is in the middle, equal ones are equally far from it. */
export class ChangeScale implements Scale {
  private readonly sizes: LoadScale;

  constructor(
    readonly least: number,
    readonly most: number,
    readonly logarithmic: boolean,
  ) {
    this.sizes = new LoadScale(least, most, logarithmic);
  }

  get ends(): [number, number] {
    return [-this.most, this.most];
  }

  part(amount: number): number {
    return amount ? 0.5 + (Math.sign(amount) * this.sizes.part(Math.abs(amount))) / 2 : 0.5;
  }

  amount(part: number): number {
    const size = Math.abs(2 * part - 1);
    return size ? Math.sign(part - 0.5) * this.sizes.amount(size) : 0;
  }

  step(amount: number): number {
    return Math.round(this.part(amount) * (STEPS - 1));
  }

  weight(step: number): number {
    return Math.abs(2 * (step / (STEPS - 1)) - 1);
  }
}
