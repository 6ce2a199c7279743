// SPDX-License-Identifier: Apache-2.0
// The context on which pictures are drawn: a canvas or an SVG file.

/** The part of a canvas context that pictures use. */
export type DrawingContext = Pick<
  CanvasRenderingContext2D,
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "font"
  | "textAlign"
  | "textBaseline"
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "stroke"
  | "fill"
  | "fillRect"
  | "strokeRect"
  | "fillText"
  | "strokeText"
  | "setLineDash"
>;
