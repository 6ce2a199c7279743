// SPDX-License-Identifier: Apache-2.0
// The picture as a file, PNG or SVG, with its title, its scale and what it rests on.

import { formatBytes } from "../show";
import type { Drawing, Transform } from "./drawing";
import { FONT } from "./drawing";
import { type Ink, SvgInk } from "./ink";
import type { Look } from "./look";

const HEAD = 54;
const FOOT = 22;
const LETTER = 6.7;

export interface Captions {
  title: string;
  /** What is chosen. */
  choice: string;
  coverage: string;
}

interface Sheet {
  drawing: Drawing;
  look: Look;
  view: Transform;
  /** Of the picture, in CSS pixels. */
  width: number;
  height: number;
  captions: Captions;
}

export function savePng(sheet: Sheet, ratio: number): void {
  const canvas = document.createElement("canvas");
  const [width, height] = [sheet.width, sheet.height + HEAD + FOOT];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) return;
  context.scale(ratio, ratio);
  paint(context, sheet);
  canvas.toBlob((blob) => {
    if (blob) offer(blob, "ibprof.png");
  });
}

export function saveSvg(sheet: Sheet): void {
  const ink = new SvgInk();
  paint(ink, sheet);
  offer(new Blob([ink.toString(sheet.width, sheet.height + HEAD + FOOT)], { type: "image/svg+xml" }), "ibprof.svg");
}

function paint(ink: Ink, { drawing, look, view, width, height, captions }: Sheet): void {
  ink.fillStyle = look.theme.ground;
  ink.fillRect(0, 0, width, height + HEAD + FOOT);
  drawing.paint(ink, look, { ...view, y: view.y + HEAD }, width, height + HEAD);
  // Over what stands out of the picture.
  ink.fillStyle = look.theme.ground;
  ink.fillRect(0, 0, width, HEAD);
  ink.fillRect(0, HEAD + height, width, FOOT);
  ink.textAlign = "left";
  ink.textBaseline = "middle";
  const write = (text: string, y: number, room: number, font: string): void => {
    ink.font = `${font} ${FONT}`;
    ink.fillStyle = look.theme.text;
    const most = Math.floor(room / LETTER);
    ink.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, 8, y);
  };
  write(captions.title, 16, (width - 16) * 0.85, "bold 14px");
  write(captions.choice, 38, width - 440, "12px");
  write(captions.coverage, HEAD + height + FOOT / 2, width - 16, "11px");
  paintScale(ink, look, width - 410);
}

function paintScale(ink: Ink, { theme, scale }: Look, left: number): void {
  const wide = 200;
  theme.ramp.forEach((colour, step, { length }) => {
    ink.fillStyle = colour;
    ink.fillRect(left + 90 + (step * wide) / length, 32, wide / length + 0.5, 12);
  });
  ink.fillStyle = theme.text;
  ink.font = `12px ${FONT}`;
  ink.textAlign = "right";
  ink.fillText(scale.logarithmic ? formatBytes(scale.least) : "0 B", left + 84, 38);
  ink.textAlign = "left";
  ink.fillText(`${formatBytes(scale.most)}${scale.logarithmic ? ", log" : ""}`, left + 96 + wide, 38);
}

function offer(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
