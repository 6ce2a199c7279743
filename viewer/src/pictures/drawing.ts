// SPDX-License-Identifier: Apache-2.0
// What a picture of the network has to know, whatever its kind.

import type { Ink } from "./ink";
import type { Look } from "./look";

/** From a picture's own units to CSS pixels: x * scale + this.x. */
export interface Transform {
  scale: number;
  x: number;
  y: number;
}

/** What is at a point. */
export interface Hit {
  node?: number | undefined;
  end?: number | undefined;
}

/** Two corners, or the two ends of a line. */
export type Place = [number, number, number, number];

export interface Drawing {
  /** As the address names it. */
  readonly name: string;
  /** Of the whole picture, in its own units, from 0. */
  readonly width: number;
  readonly height: number;
  paint(ink: Ink, look: Look, view: Transform, width: number, height: number): void;
  /** What is at a point, or at most so far from it. In its own units, as the places are. */
  find(look: Look, x: number, y: number, reach: number): Hit;
  placeOfEnd(end: number): Place;
  /** undefined where a picture shows no nodes. */
  placeOfNode(node: number): [number, number] | undefined;
  /** What a picture has that can be turned; x and y of a drag are from -1 to 1 on the ball that it turns. */
  roll?(from: [number, number], to: [number, number]): void;
  turnTo?(turn: number[] | undefined): void;
  /** How it is turned, for the address. */
  readonly turned?: number[] | undefined;
  /** Draws a link end once more, so that it stands out. */
  mark(ink: Ink, end: number, view: Transform, colour: string): void;
}

export const FONT = '"DejaVu Sans", system-ui, sans-serif';
/** Width of a letter of 11 pixels, about. */
export const LETTER = 6.6;

/** Room at the left for the names of rows. */
export const MARGIN = { left: 64, right: 24, top: 28, bottom: 28 };

/** Writes the names of rows at the left edge, wherever the picture was moved to; those that would touch are left out. */
export function paintRows(
  ink: Ink,
  look: Look,
  rows: { y: number; name: string }[],
  view: Transform,
  height: number,
): void {
  if (!rows.length) return;
  ink.fillStyle = look.theme.ground;
  ink.fillRect(0, 0, MARGIN.left - 8, height);
  ink.fillStyle = look.theme.text;
  ink.font = `12px ${FONT}`;
  ink.textAlign = "left";
  ink.textBaseline = "middle";
  let last = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const y = view.y + row.y * view.scale;
    if (y - last < 14) continue;
    ink.fillText(row.name, 8, y);
    last = y;
  }
}

/** Names as they fit beside a node: what tells nodes apart is mostly at the front. */
export function shorten(name: string): string {
  const shown = name.replace(/\p{C}/gu, "?");
  return shown.length > 24 ? `${shown.slice(0, 23)}…` : shown;
}
