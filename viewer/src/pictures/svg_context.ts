// SPDX-License-Identifier: Apache-2.0
// A drawing context that writes an SVG file.

import type { DrawingContext } from "./drawing_context";

const BASELINES: Record<string, string> = { middle: "central", top: "hanging", alphabetic: "alphabetic" };
const ANCHORS: Record<string, string> = { left: "start", center: "middle", right: "end", start: "start", end: "end" };

export class SvgContext implements DrawingContext {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  lineWidth = 1;
  font = "12px sans-serif";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private path: string[] = [];
  private dash = "";
  private readonly parts: string[] = [];

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  closePath(): void {
    this.path.push("Z");
  }

  stroke(): void {
    if (this.path.length) this.add(`<path d="${this.path.join("")}" fill="none" ${this.line()}/>`);
  }

  fill(): void {
    if (this.path.length) this.add(`<path d="${this.path.join("")}" fill="${this.fillStyle}"/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.add(`<rect ${rectangle(x, y, width, height)} fill="${this.fillStyle}"/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.add(`<rect ${rectangle(x, y, width, height)} fill="none" ${this.line()}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    this.write(text, x, y, `fill="${this.fillStyle}"`);
  }

  strokeText(text: string, x: number, y: number): void {
    this.write(text, x, y, `fill="none" stroke-linejoin="round" ${this.line()}`);
  }

  setLineDash(lengths: Iterable<number>): void {
    this.dash = [...lengths].join(" ");
  }

  /** Paint a picture within this picture; the SVG element clips it. */
  nest(x: number, y: number, width: number, height: number, paint: (context: SvgContext) => void): void {
    this.add(`<svg ${rectangle(x, y, width, height)}>`);
    paint(this);
    this.add("</svg>");
  }

  toString(width: number, height: number): string {
    const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>\n${this.parts.join("\n")}\n</svg>\n`;
  }

  private add(part: string): void {
    this.parts.push(part);
  }

  private line(): string {
    const dash = this.dash ? ` stroke-dasharray="${this.dash}"` : "";
    return `stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${dash}`;
  }

  private write(text: string, x: number, y: number, paint: string): void {
    const [, weight = "normal", size, family] = /^(?:(bold|\d{3}) )?(\d+)px (.+)$/.exec(this.font) ?? [
      "",
      "",
      "12",
      "",
    ];
    const place = `x="${short(x)}" y="${short(y)}" text-anchor="${ANCHORS[this.textAlign]}"`;
    const baseline = `dominant-baseline="${BASELINES[this.textBaseline] ?? "alphabetic"}"`;
    const letters = `font-family="${escapeXml(family)}" font-size="${size}" font-weight="${weight}"`;
    this.add(`<text ${place} ${baseline} ${letters} ${paint}>${escapeXml(text)}</text>`);
  }
}

function rectangle(x: number, y: number, width: number, height: number): string {
  return `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function escapeXml(text: string): string {
  const marks: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (mark) => marks[mark]);
}

/** Paint within a frame, which clips the picture and has the origin at its corner. */
export function paintWithin(
  context: CanvasRenderingContext2D | SvgContext,
  [left, top, width, height]: [number, number, number, number],
  paint: (context: DrawingContext) => void,
): void {
  if (context instanceof SvgContext) {
    context.nest(left, top, width, height, paint);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.translate(left, top);
  paint(context);
  context.restore();
}
