// SPDX-License-Identifier: Apache-2.0
// The interface of all kinds of pictures of the network.

import type { DrawingContext } from "./drawing_context";
import type { Encoding } from "./encoding";
import type { Stub } from "./folding";
import type { ViewTransform } from "./view_transform";

/** The node, link direction or stub of folded nodes at a point. */
export interface Hit {
  node?: number | undefined;
  end?: number | undefined;
  stub?: Stub | undefined;
}

/** x and y of two opposite corners of a box, or of the two ends of a line. */
export type Extent = [number, number, number, number];

export interface Drawing {
  /** The kind of picture, as the page's URL names it. */
  readonly name: string;
  /** The size of the whole picture, in units of the picture. */
  readonly width: number;
  readonly height: number;
  paint(context: DrawingContext, encoding: Encoding, view: ViewTransform, width: number, height: number): void;
  /** Return the node, link direction or stub at most `reach` from a point. All lengths are in units of the picture. */
  find(encoding: Encoding, x: number, y: number, reach: number): Hit;
  extentOfEnd(end: number): Extent;
  /** Return the position of a node; undefined if the picture shows no nodes. */
  positionOfNode(node: number): [number, number] | undefined;
  /** True if nodes without traffic are folded or could be folded. */
  readonly isFoldable?: boolean;
  /** Rotate the picture by a drag, as in `arcball`: x and y are from -1 to 1. */
  roll?(from: [number, number], to: [number, number]): void;
  rotateTo?(rotation: number[] | undefined): void;
  /** The rotation of the picture, for the page's URL. */
  readonly rotation?: number[] | undefined;
  /** Highlight a link direction. */
  highlight(context: DrawingContext, end: number, view: ViewTransform, colour: string): void;
}

/** Largest distance, in pixels, at which the pointer hits a node or link. */
export const REACH = 6;

export const FONT = '"DejaVu Sans", system-ui, sans-serif';
/** The approximate width of a letter of the 11-pixel font. */
export const LETTER = 6.6;

/** Space around the picture. The names of rows are at the left. */
export const MARGIN = { left: 64, right: 24, top: 28, bottom: 28 };

/** Write the names of rows at the left edge of the canvas; names that would overlap are left out. */
export function paintRowNames(
  context: DrawingContext,
  encoding: Encoding,
  rows: { y: number; name: string }[],
  view: ViewTransform,
  height: number,
): void {
  if (!rows.length) return;
  context.fillStyle = encoding.theme.ground;
  context.fillRect(0, 0, MARGIN.left - 8, height);
  context.fillStyle = encoding.theme.text;
  context.font = `12px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  let last = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const y = view.y + row.y * view.scale;
    if (y - last < 14) continue;
    context.fillText(row.name, 8, y);
    last = y;
  }
}

/** Shorten a name in the middle, to fit next to a node. Names of switches often differ only in their ends. */
export function shorten(name: string): string {
  const shown = name.replace(/\p{C}/gu, "?");
  return shown.length > 24 ? `${shown.slice(0, 10)}…${shown.slice(-13)}` : shown;
}
