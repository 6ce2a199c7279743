// SPDX-License-Identifier: Apache-2.0
// Colours of the two themes. Ramps change evenly in lightness and are distinct for colour-blind readers. The dark
// theme's ramp is reversed.

/** The ramp begins near the background's lightness, so that small loads are inconspicuous. */
const LIGHT = ["#eed9a6", "#f0a55c", "#d9525c", "#8a2a7c", "#220845"];
const DARK = ["#3f3869", "#80429a", "#d05681", "#f99a5a", "#fff3c4"];

/** Ramp of changes: blue is less, grey unchanged, orange more. Colour-blind readers can distinguish them. */
const LIGHT_CHANGE = ["#0b3c8c", "#3f7fc4", "#a9c3de", "#cfd2d6", "#e6bd84", "#c9731a", "#7d3c00"];
const DARK_CHANGE = ["#a8d1ff", "#5a9be6", "#39618f", "#4a4f57", "#8a6233", "#e0913a", "#ffd9a0"];

export const STEPS = 64;

export interface Theme {
  ramp: string[];
  /** The diverging ramp of changes. */
  change: string[];
  ground: string;
  idle: string;
  faded: string;
  node: string;
  job: string;
  text: string;
  chosen: string;
  pointed: string;
  /** Colours of jobs, distinct in all kinds of colour blindness (Okabe and Ito). */
  jobs: string[];
  /** Colours of numeric attributes of nodes and ranks; the hues differ from hues of loads. */
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
