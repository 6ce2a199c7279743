// SPDX-License-Identifier: Apache-2.0
// The SVG writer: names are escaped, frames are nested.
import assert from "node:assert/strict";
import { test } from "node:test";
import { paintArrowhead } from "../src/pictures/arrowheads";
import { paintWithin, SvgContext } from "../src/pictures/svg_context";

test("text is escaped, with its alignment and font", () => {
  const svg = new SvgContext();
  svg.font = "bold 14px Sans";
  svg.textAlign = "center";
  svg.textBaseline = "middle";
  svg.fillStyle = "#123456";
  svg.fillText("<script>&\"'", 1.234, 5);
  const text = svg.toString(10, 20);
  assert.ok(text.includes("&lt;script&gt;&amp;&quot;&#39;</text>"));
  assert.ok(text.includes('x="1.23" y="5" text-anchor="middle" dominant-baseline="central"'));
  assert.ok(text.includes('font-family="Sans" font-size="14" font-weight="bold" fill="#123456"'));
  assert.ok(text.startsWith('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="20" viewBox="0 0 10 20">'));
});

test("paths, dashes and frames", () => {
  const svg = new SvgContext();
  svg.setLineDash([5, 4]);
  paintWithin(svg, [1, 2, 30, 40], (frame) => {
    frame.beginPath();
    frame.moveTo(0, 0);
    frame.lineTo(3, 4);
    frame.stroke();
  });
  const lines = svg.toString(9, 9).split("\n");
  assert.equal(lines[1], '<svg x="1" y="2" width="30" height="40">');
  assert.equal(lines[2], '<path d="M0 0L3 4" fill="none" stroke="#000" stroke-width="1" stroke-dasharray="5 4"/>');
  assert.equal(lines[3], "</svg>");
});

test("an arrowhead points along its direction", () => {
  const svg = new SvgContext();
  paintArrowhead(svg, [10, 10], [4, 0], 0.5);
  assert.ok(svg.toString(9, 9).includes('d="M14 10L6 12L6 8Z"'));
});
