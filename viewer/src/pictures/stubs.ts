// SPDX-License-Identifier: Apache-2.0
// Stubs: boxes that stand for folded nodes without traffic.

import { formatCount } from "../format";
import { FONT, LETTER, MARGIN } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import type { Encoding } from "./encoding";
import { STUB_WIDTH } from "./folding";
import type { PlacedStub } from "./line_layout";
import type { ViewTransform } from "./view_transform";

const HIGH = 7;
/** The pointer hits a box up to this distance, in pixels. */
const SLACK = 3;
const NARROWEST = 3;
const WIDEST = 40;
/** The distance of a label from its row, and the space between labels, in pixels. */
const BELOW = 18;
const APART = 6;
/** Space between labels without words: closer numbers would look like one number. */
const NUMBERS_APART = 14;

/** Return half the width of a stub, in pixels. */
function halfWidth({ columns }: PlacedStub, scale: number): number {
  return Math.min(Math.max(STUB_WIDTH * columns * scale, NARROWEST), WIDEST) / 2;
}

/** Return the stub at a point, in units of the picture; `scale` is pixels / unit. */
export function findStub(stubs: readonly PlacedStub[], x: number, y: number, scale: number): PlacedStub | undefined {
  const isNear = (stub: PlacedStub): boolean =>
    Math.abs(stub.x - x) * scale <= halfWidth(stub, scale) + SLACK && Math.abs(stub.y - y) * scale <= HIGH / 2 + SLACK;
  return stubs.find(isNear);
}

/** Paint the boxes, and the number of nodes below each box if there is space. */
export function paintStubs(
  context: DrawingContext,
  { theme }: Encoding,
  stubs: readonly PlacedStub[],
  view: ViewTransform,
  width: number,
): void {
  context.font = `11px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const rows = new Map<number, PlacedStub[]>();
  for (const stub of stubs) {
    const row = rows.get(stub.y);
    if (row) row.push(stub);
    else rows.set(stub.y, [stub]);
  }
  for (const row of rows.values()) {
    row.sort((one, other) => one.x - other.x);
    let free = MARGIN.left;
    row.forEach((stub, at) => {
      const [x, y] = [view.x + stub.x * view.scale, view.y + stub.y * view.scale];
      const half = halfWidth(stub, view.scale);
      context.fillStyle = theme.faded;
      context.fillRect(x - half, y - HIGH / 2, 2 * half, HIGH);
      context.strokeStyle = theme.node;
      context.lineWidth = 1;
      context.strokeRect(x - half, y - HIGH / 2, 2 * half, HIGH);
      const next = row[at + 1];
      const end = next ? (x + view.x + next.x * view.scale) / 2 : width;
      for (const text of [nameOf(stub), countOf(stub)]) {
        const isName = text === nameOf(stub);
        const wide = (text.length * LETTER + (isName ? APART : NUMBERS_APART)) / 2;
        if (x - wide < free || x + wide > end) continue;
        if (isName && stub.label === undefined && wide > (stub.gap * view.scale) / 2) continue;
        context.strokeStyle = theme.ground;
        context.lineWidth = 3;
        context.strokeText(text, x, y + BELOW);
        context.fillStyle = theme.text;
        context.fillText(text, x, y + BELOW);
        free = x + wide;
        break;
      }
      free = Math.max(free, end);
    });
  }
}

function countOf({ nodes, isSwitch, hosts }: PlacedStub): string {
  return formatCount(BigInt(isSwitch ? nodes.length : hosts));
}

/** Name the nodes that a stub stands for in its row. */
function nameOf(stub: PlacedStub): string {
  return stub.label ?? `${countOf(stub)} ${stub.isSwitch ? "switches" : `${stub.noun}s`}`;
}
