// SPDX-License-Identifier: Apache-2.0
// The network as nodes and lines, coloured by loads.

import { type Model, SWITCH } from "../data/model";
import { paintArrowhead } from "./arrowheads";
import { type Drawing, type Extent, FONT, type Hit, MARGIN, paintRowNames, REACH, shorten } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { colouringEnd, type Encoding, HIDDEN, IDLE, isNodeShown, selectedNodes, selectsEndpoints } from "./encoding";
import type { Folding } from "./folding";
import { HalfLinks } from "./half_links";
import { Labels, paintLabel } from "./labels";
import { type LineLayout, layOutNodes } from "./line_layout";
import { STEPS } from "./palette";
import { locateMarks, MARK_SIZE, markedEnds, paintMarkedLinks, paintMarks, type RankMark } from "./rank_marks";
import { findStub, paintStubs } from "./stubs";
import type { ViewTransform } from "./view_transform";

/** Line width = `TOTAL_WIDTH` / square root of the number of lines, within limits. */
const TOTAL_WIDTH = 26;
const THINNEST = 0.6;
/** Largest width of a line. */
const THICKEST = 7;
/** Total width of the lines with the largest emphasis, if there are many lines. */
const EMPHASIS = 150;
const MOST_ARROWS = 1500;
const ARROW = 5;
/** Side, in pixels, of squares; each square contains at most one arrow for each direction. */
const APART = 14;
/** Half the side of the name-free square around a node; largest number of names if nodes have no levels. */
const NODE = 5;
const MOST_NAMES = 300;
/** Half the width and height of a stub with its label. In a picture without levels, no name covers this area. */
const STUB_WIDTH = 45;
const STUB_HEIGHT = 26;
/** The size of the largest node. */
const LARGEST_NODE = 12;

export class LineDrawing implements Drawing {
  readonly name = "lines";
  readonly layout: LineLayout;
  private readonly halfLinks: HalfLinks;

  constructor(
    private readonly model: Model,
    private readonly nodeColour: (node: number, encoding: Encoding) => string | null,
    folding: Folding | null = null,
    readonly isFoldable = false,
  ) {
    this.layout = layOutNodes(model, folding);
    this.halfLinks = new HalfLinks(model, this.layout);
  }

  get width(): number {
    return this.layout.width;
  }

  get height(): number {
    return this.layout.height;
  }

  positionOfNode(node: number): [number, number] {
    return [this.layout.x[node], this.layout.y[node]];
  }

  extentOfEnd(end: number): Extent {
    return this.halfLinks.extentOf(end);
  }

  /** Return the node at a point, else the nearest half link; half links with traffic come first. */
  find(encoding: Encoding, x: number, y: number, reach: number): Hit {
    const { model, layout } = this;
    let nearest = reach;
    let found: number | undefined;
    for (let node = 0; node < model.nodes; node++) {
      if (Math.abs(layout.y[node] - y) > nearest || Math.abs(layout.x[node] - x) > nearest) continue;
      const distance = Math.hypot(layout.x[node] - x, layout.y[node] - y);
      if (distance < nearest && this.isNodeShown(encoding, node)) [nearest, found] = [distance, node];
    }
    const stub = found === undefined ? findStub(layout.stubs, x, y, REACH / reach) : undefined;
    if (stub) return { stub };
    return found === undefined ? { end: this.halfLinks.find(encoding, x, y, reach) } : { node: found };
  }

  paint(context: DrawingContext, encoding: Encoding, view: ViewTransform, width: number, height: number): void {
    this.paintLinks(context, encoding, view, width, height);
    const { stubs } = this.layout;
    paintStubs(
      context,
      encoding,
      stubs.filter(({ nodes }) => isNodeShown(encoding, nodes[0])),
      view,
      width,
    );
    this.paintNodes(context, encoding, view, width, height);
    const marks = locateMarks(encoding, view, (end) => this.extentOfEnd(end));
    this.paintNames(context, encoding, view, width, height, marks);
    paintMarks(context, encoding, marks);
    paintRowNames(context, encoding, this.layout.rows, view, height);
  }

  private isNodeShown(encoding: Encoding, node: number): boolean {
    return !isFolded(this.layout, node) && isNodeShown(encoding, node);
  }

  highlight(context: DrawingContext, end: number, view: ViewTransform, colour: string): void {
    this.halfLinks.highlight(context, end, view, colour);
  }

  private paintLinks(
    context: DrawingContext,
    encoding: Encoding,
    view: ViewTransform,
    width: number,
    height: number,
  ): void {
    const idle: number[] = [];
    const batches = new Map<number, number[]>();
    const count = { lit: 0, squares: 0 };
    for (let end = 0; end < encoding.steps.length; end++) {
      const step = encoding.steps[colouringEnd(encoding, end)];
      if (step === HIDDEN || !this.halfLinks.isDrawn(end)) continue;
      if (!this.isVisible(end, view, width, height)) continue;
      const back = encoding.steps[end ^ 1];
      if (step === IDLE && (back === IDLE || back === HIDDEN)) {
        idle.push(end);
        continue;
      }
      if (encoding.steps[end] !== IDLE && encoding.steps[end] !== HIDDEN) {
        count.lit++;
        count.squares += partOf(encoding.emphasis[end]) ** 2;
      }
      const batch = linkEmphasis(encoding, end) * (STEPS + 1) + step;
      const ends = batches.get(batch);
      if (ends) ends.push(end);
      else batches.set(batch, [end]);
    }
    // The more lines there are, the thinner they are.
    const thin = Math.min(Math.max(TOTAL_WIDTH / Math.sqrt(count.lit + 1), THINNEST), 1.5);
    const thick = Math.min(Math.max(EMPHASIS / (count.squares + 1), thin), THICKEST);
    const widthOf = (end: number): number => thin + (thick - thin) * partOf(linkEmphasis(encoding, end)) ** 2;
    context.strokeStyle = encoding.theme.idle;
    context.lineWidth = Math.min(thin, Math.max(TOTAL_WIDTH / Math.sqrt(2 * this.model.links + 1), 0.4));
    this.halfLinks.stroke(context, idle, view);
    // Draw the most loaded lines last, over all others.
    const order = [...batches].sort(([one], [other]) => one - other);
    for (const [batch, ends] of order) {
      context.strokeStyle = encoding.ramp[(batch % (STEPS + 1)) - 1] ?? encoding.theme.node;
      context.lineWidth = widthOf(ends[0]);
      this.halfLinks.stroke(context, ends, view);
    }
    paintMarkedLinks(context, encoding, view, this.halfLinks, widthOf);
    this.halfLinks.strokeUnusedRoutes(context, encoding, view);
    if (selectsEndpoints(encoding.state)) {
      const lit = order.flatMap(([, ends]) => ends).filter((end) => encoding.steps[end] !== IDLE);
      this.paintArrows(context, encoding, [...lit, ...encoding.unusedRoutes], view);
    }
    if (encoding.state.end !== undefined) this.highlight(context, encoding.state.end, view, encoding.theme.chosen);
  }

  private isVisible(end: number, view: ViewTransform, width: number, height: number): boolean {
    // No arrays are allocated, because this code runs for each link direction of each picture.
    const { x, y, middleX, middleY } = this.layout;
    const node = this.model.endNode[end];
    const fromX = view.x + x[node] * view.scale;
    const toX = view.x + middleX[end >> 1] * view.scale;
    if ((fromX < 0 && toX < 0) || (fromX > width && toX > width)) return false;
    const fromY = view.y + y[node] * view.scale;
    const toY = view.y + middleY[end >> 1] * view.scale;
    return !((fromY < 0 && toY < 0) || (fromY > height && toY > height));
  }

  /** Paint arrows in the direction of the traffic on links that are long enough. */
  private paintArrows(
    context: DrawingContext,
    encoding: Encoding,
    ends: number[],
    { scale, x: left, y: top }: ViewTransform,
  ): void {
    if (ends.length > MOST_ARROWS) return;
    context.fillStyle = encoding.theme.text;
    context.strokeStyle = encoding.theme.ground;
    context.lineWidth = 1;
    const taken = new Set<string>();
    for (const end of ends) {
      const [fromX, fromY, toX, toY] = this.extentOfEnd(end);
      const length = Math.hypot(toX - fromX, toY - fromY);
      if (length * scale < 3 * ARROW) continue;
      const [alongX, alongY] = [((toX - fromX) / length) * ARROW, ((toY - fromY) / length) * ARROW];
      const [x, y] = [left + (fromX + 0.7 * (toX - fromX)) * scale, top + (fromY + 0.7 * (toY - fromY)) * scale];
      const place = `${Math.round(x / APART)} ${Math.round(y / APART)} ${Math.sign(alongY)}`;
      if (taken.has(place)) continue;
      taken.add(place);
      paintArrowhead(context, [x, y], [alongX, alongY], 0.7);
    }
  }

  private paintNodes(
    context: DrawingContext,
    encoding: Encoding,
    view: ViewTransform,
    width: number,
    height: number,
  ): void {
    const { model, layout } = this;
    const host = Math.min(Math.max(view.scale * 0.6, 1.2), 10);
    const chosen = selectedNodes(encoding);
    this.visitNodes(encoding, view, [width, height], LARGEST_NODE, (node, x, y) => {
      if (isFolded(layout, node) && !chosen.has(node)) return;
      const colour = this.nodeColour(node, encoding);
      const size =
        model.nodeKind[node] === SWITCH ? Math.min(Math.max(host * 1.5 + 1, 4), 12) : colour ? host + 1.5 : host;
      context.fillStyle = colour ?? encoding.theme.node;
      context.fillRect(x - size / 2, y - size / 2, size, colour ? size * 1.6 : size);
      if (!chosen.has(node)) return;
      context.strokeStyle = encoding.theme.chosen;
      context.lineWidth = 2;
      context.strokeRect(x - size / 2 - 3, y - size / 2 - 3, size + 6, (colour ? size * 1.6 : size) + 6);
    });
  }

  /** Call `visit` with the position in pixels of each shown node within `margin` pixels of the picture. */
  private visitNodes(
    encoding: Encoding,
    view: ViewTransform,
    [width, height]: [number, number],
    margin: number,
    visit: (node: number, x: number, y: number) => void,
  ): void {
    const { x: nodeX, y: nodeY } = this.layout;
    for (let node = 0; node < this.model.nodes; node++) {
      const x = view.x + nodeX[node] * view.scale;
      const y = view.y + nodeY[node] * view.scale;
      if (x < -margin || y < -margin || x > width + margin || y > height + margin) continue;
      if (isNodeShown(encoding, node)) visit(node, x, y);
    }
  }

  /** Write names if there is space: first of the ends of numbered links, then of switches, then of nodes of jobs. */
  private paintNames(
    context: DrawingContext,
    encoding: Encoding,
    view: ViewTransform,
    width: number,
    height: number,
    marks: readonly RankMark[],
  ): void {
    context.font = `11px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const { model, layout } = this;
    const hasRows = layout.rows.length > 0;
    const labels = new Labels(hasRows ? MARGIN.left - 8 : 0, width, height);
    for (const { x, y } of marks) labels.block(x, y, MARK_SIZE);
    const marked = new Set(markedEnds(encoding).flatMap((end) => [model.endNode[end], model.endNode[end ^ 1]]));
    const places: { node: number; x: number; y: number; weight: number }[] = [];
    for (const { x, y } of layout.stubs)
      labels.blockBox(view.x + x * view.scale, view.y + y * view.scale, STUB_WIDTH, STUB_HEIGHT);
    this.visitNodes(encoding, view, [width, height], 0, (node, x, y) => {
      if (isFolded(layout, node)) return;
      // In a picture with rows, names are above or below the nodes and cover none.
      if (!hasRows) labels.block(x, y, NODE);
      const isSwitch = model.nodeKind[node] === SWITCH;
      const weight = (marked.has(node) ? 4 : 0) + (isSwitch ? 2 : 0) + (this.nodeColour(node, encoding) ? 1 : 0);
      places.push({ node, x, y, weight });
    });
    places.sort((one, other) => other.weight - one.weight || one.node - other.node);
    let named = 0;
    for (const { node, x, y } of places) {
      const name = this.nameOf(node);
      const where = y + (model.nodeKind[node] === SWITCH ? -14 : 21);
      const at = labels.fit(name, x);
      if (named >= MOST_NAMES || !labels.reserve(name, at, where)) continue;
      named++;
      paintLabel(context, encoding.theme, name, at, where);
    }
  }

  /** Name a node; for an adapter, use the host's name, which is shorter. */
  private nameOf(node: number): string {
    const { header, nodeHost } = this.model;
    return shorten(header.host_names[nodeHost[node]] ?? header.node_names[node]);
  }
}

/** Return the larger emphasis of a link's two directions, so that the whole link is visible. */
function linkEmphasis({ emphasis }: Encoding, end: number): number {
  return Math.max(emphasis[end], emphasis[end ^ 1]);
}

/** Return an emphasis divided by the largest possible emphasis. */
function partOf(emphasis: number): number {
  return emphasis / (STEPS - 1);
}

function isFolded({ stubOf }: LineLayout, node: number): boolean {
  return stubOf !== undefined && stubOf[node] >= 0;
}
