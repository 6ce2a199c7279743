// SPDX-License-Identifier: Apache-2.0
// Export of the picture to PNG or SVG, with its title, scale and coverage.

import type { Drawing } from "./drawing";
import { FONT } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { type Encoding, formatAmount } from "./encoding";
import { paintWithin, SvgContext } from "./svg_context";
import type { ViewTransform } from "./view_transform";

const HEAD = 54;
const FOOT = 22;
const LETTER = 6.7;
const NAME = 20;
const GAP = 8;

export interface Captions {
  title: string;
  /** The active filters. */
  filters: string;
  coverage: string;
}

/** The content of the file: one picture, or two side by side. */
export interface Sheet {
  drawing: Drawing;
  /** The pictures; the name is empty if there is only one picture. */
  panes: { encoding: Encoding; name: string }[];
  view: ViewTransform;
  /** The size of each picture, in CSS pixels. */
  width: number;
  height: number;
  captions: Captions;
}

export function savePng(sheet: Sheet, ratio: number): void {
  const canvas = document.createElement("canvas");
  const { width, height } = sizeOf(sheet);
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) return;
  context.scale(ratio, ratio);
  paint(context, sheet);
  canvas.toBlob((blob) => {
    if (blob) download(blob, "ibprof.png");
  });
}

export function saveSvg(sheet: Sheet): void {
  const context = new SvgContext();
  paint(context, sheet);
  const { width, height } = sizeOf(sheet);
  download(new Blob([context.toString(width, height)], { type: "image/svg+xml" }), "ibprof.svg");
}

function namesHeight({ panes }: Sheet): number {
  return panes.some(({ name }) => name) ? NAME : 0;
}

function sizeOf(sheet: Sheet): { width: number; height: number } {
  const { panes, width, height } = sheet;
  return { width: panes.length * width + (panes.length - 1) * GAP, height: HEAD + namesHeight(sheet) + height + FOOT };
}

function paint(context: CanvasRenderingContext2D | SvgContext, sheet: Sheet): void {
  const { drawing, panes, view, width, height, captions } = sheet;
  const { encoding } = panes[0];
  const whole = sizeOf(sheet);
  context.fillStyle = encoding.theme.ground;
  context.fillRect(0, 0, whole.width, whole.height);
  const top = HEAD + namesHeight(sheet);
  const write = (text: string, x: number, y: number, maxWidth: number, font: string): void => {
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.font = `${font} ${FONT}`;
    context.fillStyle = encoding.theme.text;
    const most = Math.floor(maxWidth / LETTER);
    context.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
  };
  panes.forEach((pane, at) => {
    const left = at * (width + GAP);
    paintWithin(context, [left, top, width, height], (within) =>
      drawing.paint(within, pane.encoding, view, width, height),
    );
    if (pane.name) write(pane.name, left + 8, HEAD + NAME / 2, width - 16, "bold 12px");
  });
  write(captions.title, 8, 16, (whole.width - 16) * 0.85, "bold 14px");
  write(captions.filters, 8, 38, whole.width - 440, "12px");
  write(captions.coverage, 8, top + height + FOOT / 2, whole.width - 16, "11px");
  paintScale(context, encoding, whole.width - 410);
}

function paintScale(context: DrawingContext, encoding: Encoding, left: number): void {
  const { theme, scale, ramp, value } = encoding;
  const wide = 200;
  ramp.forEach((colour, step, { length }) => {
    context.fillStyle = colour;
    context.fillRect(left + 90 + (step * wide) / length, 32, wide / length + 0.5, 12);
  });
  const [least, most] = scale.ends;
  context.fillStyle = theme.text;
  context.font = `12px ${FONT}`;
  context.textAlign = "right";
  context.fillText(formatAmount(encoding, least), left + 84, 38);
  context.textAlign = "left";
  context.fillText(
    `${formatAmount(encoding, most)}${value ? ` ${value.name}` : ""}${scale.logarithmic ? ", log" : ""}`,
    left + 96 + wide,
    38,
  );
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
