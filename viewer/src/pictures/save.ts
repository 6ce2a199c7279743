// SPDX-License-Identifier: Apache-2.0
// The picture as a file, PNG or SVG, with its title, its scale and what it rests on.

import type { Drawing, Transform } from "./drawing";
import { FONT } from "./drawing";
import { type Ink, paintWithin, SvgInk } from "./ink";
import { type Look, sayAmount } from "./look";

const HEAD = 54;
const FOOT = 22;
const LETTER = 6.7;
const NAME = 20;
const GAP = 8;

export interface Captions {
  title: string;
  /** What is chosen. */
  choice: string;
  coverage: string;
}

/** What is saved: a picture, or two beside one another. */
export interface Sheet {
  drawing: Drawing;
  /** Of each picture what it shows, its name if it needs one. */
  panes: { look: Look; name: string }[];
  view: Transform;
  /** Of each picture, in CSS pixels. */
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
    if (blob) offer(blob, "ibprof.png");
  });
}

export function saveSvg(sheet: Sheet): void {
  const ink = new SvgInk();
  paint(ink, sheet);
  const { width, height } = sizeOf(sheet);
  offer(new Blob([ink.toString(width, height)], { type: "image/svg+xml" }), "ibprof.svg");
}

function namesHeight({ panes }: Sheet): number {
  return panes.some(({ name }) => name) ? NAME : 0;
}

function sizeOf(sheet: Sheet): { width: number; height: number } {
  const { panes, width, height } = sheet;
  return { width: panes.length * width + (panes.length - 1) * GAP, height: HEAD + namesHeight(sheet) + height + FOOT };
}

function paint(ink: CanvasRenderingContext2D | SvgInk, sheet: Sheet): void {
  const { drawing, panes, view, width, height, captions } = sheet;
  const { look } = panes[0];
  const whole = sizeOf(sheet);
  ink.fillStyle = look.theme.ground;
  ink.fillRect(0, 0, whole.width, whole.height);
  const top = HEAD + namesHeight(sheet);
  const write = (text: string, x: number, y: number, room: number, font: string): void => {
    ink.textAlign = "left";
    ink.textBaseline = "middle";
    ink.font = `${font} ${FONT}`;
    ink.fillStyle = look.theme.text;
    const most = Math.floor(room / LETTER);
    ink.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
  };
  panes.forEach((pane, at) => {
    const left = at * (width + GAP);
    paintWithin(ink, [left, top, width, height], (within) => drawing.paint(within, pane.look, view, width, height));
    if (pane.name) write(pane.name, left + 8, HEAD + NAME / 2, width - 16, "bold 12px");
  });
  write(captions.title, 8, 16, (whole.width - 16) * 0.85, "bold 14px");
  write(captions.choice, 8, 38, whole.width - 440, "12px");
  write(captions.coverage, 8, top + height + FOOT / 2, whole.width - 16, "11px");
  paintScale(ink, look, whole.width - 410);
}

function paintScale(ink: Ink, look: Look, left: number): void {
  const { theme, scale, ramp, value } = look;
  const wide = 200;
  ramp.forEach((colour, step, { length }) => {
    ink.fillStyle = colour;
    ink.fillRect(left + 90 + (step * wide) / length, 32, wide / length + 0.5, 12);
  });
  const [least, most] = scale.ends;
  ink.fillStyle = theme.text;
  ink.font = `12px ${FONT}`;
  ink.textAlign = "right";
  ink.fillText(sayAmount(look, least), left + 84, 38);
  ink.textAlign = "left";
  ink.fillText(
    `${sayAmount(look, most)}${value ? ` ${value.name}` : ""}${scale.logarithmic ? ", log" : ""}`,
    left + 96 + wide,
    38,
  );
}

function offer(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
