// SPDX-License-Identifier: Apache-2.0
// A three-dimensional picture of the network. A drag rotates the picture. Near nodes are drawn over far nodes.

import { type Model, SWITCH } from "../data/model";
import { paintArrowhead } from "./arrowheads";
import { fillDisc } from "./discs";
import { type Drawing, type Extent, FONT, type Hit, shorten } from "./drawing";
import type { DrawingContext } from "./drawing_context";
import { colouringEnd, type Encoding, HIDDEN, isNodeShown, selectedNodes, selectsEndpoints } from "./encoding";
import { HalfLinks } from "./half_links";
import { Labels, paintLabel } from "./labels";
import { STEPS } from "./palette";
import { Projection } from "./projection";
import { locateMarks, MARK_SIZE, paintMarks, type RankMark } from "./rank_marks";
import { arcball, combine, IDENTITY, normalise, type Quaternion } from "./rotation";
import type { ViewTransform } from "./view_transform";

/** Number of depth slices; nodes and links of one slice are drawn together. */
const SLICES = 8;
/** Largest number of links that are drawn during a drag. All links are drawn after the drag. */
const MOST_WHILE_DRAGGED = 12000;
const ARROW = 7;
const MOST_ARROWS = 4000;
const MOST_NAMES = 120;
const SIDES = 8;
/** Half the side of the name-free square around a node. */
const NODE = 7;
const ASIDE = 16;

export class SpaceDrawing implements Drawing {
  readonly name = "space";
  private readonly projection: Projection;
  private readonly halfLinks: HalfLinks;
  private orientation: Quaternion = IDENTITY;
  private dragged = false;

  constructor(
    private readonly model: Model,
    private readonly nodeColour: (node: number, encoding: Encoding) => string | null,
  ) {
    this.projection = new Projection(model.space ?? new Float32Array(3 * model.nodes), model.nodes, model.endNode);
    this.halfLinks = new HalfLinks(model, this.projection);
    this.projection.rotate(this.orientation);
  }

  get width(): number {
    return this.projection.size;
  }

  get height(): number {
    return this.projection.size;
  }

  get rotation(): number[] | undefined {
    return this.orientation === IDENTITY ? undefined : this.orientation.map((each) => Number(each.toPrecision(6)));
  }

  rotateTo(rotation: number[] | undefined): void {
    this.dragged = false;
    if (String(rotation ?? "") === String(this.rotation ?? "")) return;
    this.orientation = rotation ? normalise(rotation) : IDENTITY;
    this.projection.rotate(this.orientation);
  }

  roll(from: [number, number], to: [number, number]): void {
    this.dragged = true;
    this.orientation = combine(arcball(from, to), this.orientation);
    this.projection.rotate(this.orientation);
  }

  positionOfNode(node: number): [number, number] {
    return [this.projection.x[node], this.projection.y[node]];
  }

  extentOfEnd(end: number): Extent {
    return this.halfLinks.extentOf(end);
  }

  /** Return the frontmost node at a point, else the nearest half link. Coloured half links come first. */
  find(encoding: Encoding, x: number, y: number, reach: number): Hit {
    const { model, projection } = this;
    let found: number | undefined;
    let best = Number.NEGATIVE_INFINITY;
    for (let node = 0; node < model.nodes; node++) {
      if (Math.hypot(projection.x[node] - x, projection.y[node] - y) > reach || projection.near[node] <= best) continue;
      if (isNodeShown(encoding, node)) [best, found] = [projection.near[node], node];
    }
    return found === undefined ? { end: this.halfLinks.find(encoding, x, y, reach) } : { node: found };
  }

  paint(context: DrawingContext, encoding: Encoding, view: ViewTransform, width: number, height: number): void {
    const links = this.sortLinks(encoding);
    const nodes = this.sortNodes(encoding, view, width, height);
    const shown = links.flat(2).length;
    const thin = Math.min(Math.max(40 / Math.sqrt(shown + 1), 0.5), 2.6);
    for (let slice = 0; slice < SLICES; slice++) {
      links[slice].forEach((ends, step) => {
        if (!ends.length) return;
        context.strokeStyle = step ? encoding.ramp[step - 1] : encoding.theme.idle;
        context.lineWidth = thin * (0.6 + (0.8 * slice) / SLICES) * (step ? 1 : 0.6);
        this.halfLinks.stroke(context, ends, view);
      });
      this.paintNodes(context, encoding, nodes[slice], view);
    }
    this.paintArrows(context, encoding, links, view);
    this.paintSelection(context, encoding, view);
    const marks = locateMarks(encoding, view, (end) => this.extentOfEnd(end));
    if (!this.dragged) this.paintNames(context, encoding, nodes, view, width, height, marks);
    paintMarks(context, encoding, marks);
  }

  highlight(context: DrawingContext, end: number, view: ViewTransform, colour: string): void {
    this.halfLinks.highlight(context, end, view, colour);
  }

  private sliceOf(at: number): number {
    return Math.min(SLICES - 1, Math.max(0, Math.floor(((this.projection.near[at] + 1) / 2) * SLICES)));
  }

  /** Return [slice][step], link directions; within a slice, the strongest colour is drawn last. */
  private sortLinks(encoding: Encoding): number[][][] {
    const { model, projection } = this;
    const sorted = Array.from({ length: SLICES }, () => Array.from({ length: STEPS + 1 }, (): number[] => []));
    const stride = this.dragged ? Math.ceil(model.links / MOST_WHILE_DRAGGED) : 1;
    for (let link = 0; link < model.links; link += stride) {
      const slices = sorted[this.sliceOf(projection.nodes + link)];
      for (const end of [2 * link, 2 * link + 1]) {
        // Both halves of a one-way link have the same colour.
        const isSimplex = model.simplex[end ^ 1] && encoding.value;
        const step = encoding.steps[isSimplex ? end ^ 1 : colouringEnd(encoding, end)];
        if (step !== HIDDEN) slices[step].push(end);
      }
    }
    return sorted;
  }

  private sortNodes(encoding: Encoding, view: ViewTransform, width: number, height: number): number[][] {
    const sorted = Array.from({ length: SLICES }, (): number[] => []);
    for (let node = 0; node < this.model.nodes; node++) {
      const [x, y] = this.at(node, view);
      if (x < -12 || y < -12 || x > width + 12 || y > height + 12 || !isNodeShown(encoding, node)) continue;
      sorted[this.sliceOf(node)].push(node);
    }
    return sorted;
  }

  private at(node: number, { scale, x, y }: ViewTransform): [number, number] {
    return [x + this.projection.x[node] * scale, y + this.projection.y[node] * scale];
  }

  /** Paint switches as squares and hosts as discs, with a rim. */
  private paintNodes(context: DrawingContext, encoding: Encoding, nodes: number[], view: ViewTransform): void {
    const { model, projection } = this;
    const spacing = (view.scale * projection.size) / Math.sqrt(model.nodes + 1);
    for (const node of nodes) {
      const [x, y] = this.at(node, view);
      const colour = this.nodeColour(node, encoding);
      const isSwitch = model.nodeKind[node] === SWITCH;
      const least = isSwitch ? 2.2 : 1.2;
      const size = Math.min(Math.max(spacing * 0.11, least), isSwitch ? 8 : 5.5) * (1 + 0.3 * projection.near[node]);
      const fill = colour ?? (isSwitch ? encoding.theme.text : encoding.theme.node);
      const rims: [string, number][] = size > 2.5 ? [[encoding.theme.ground, size + 1.2]] : [];
      for (const [paint, radius] of [...rims, [fill, size] as [string, number]]) {
        context.fillStyle = paint;
        if (isSwitch || radius < 2) context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        else fillDisc(context, x, y, radius, SIDES);
      }
    }
  }

  /** Paint the direction of one-way links, and of the traffic of a selection. */
  private paintArrows(context: DrawingContext, encoding: Encoding, links: number[][][], view: ViewTransform): void {
    const showsTraffic = !encoding.value && selectsEndpoints(encoding.state);
    const { simplex } = this.model;
    let count = 0;
    context.lineWidth = 1.5;
    links.forEach((steps) => {
      steps.forEach((ends, step) => {
        for (const each of ends) {
          if (!simplex[each] && !(showsTraffic && step)) continue;
          if (count++ > MOST_ARROWS) return;
          context.strokeStyle = encoding.theme.ground;
          context.fillStyle = step ? encoding.ramp[step - 1] : encoding.theme.node;
          this.paintArrowhead(context, each, view);
        }
      });
    });
  }

  private paintArrowhead(context: DrawingContext, end: number, view: ViewTransform): void {
    const { endNode } = this.model;
    const [fromX, fromY] = this.at(endNode[end], view);
    const [toX, toY] = this.at(endNode[end ^ 1], view);
    const length = Math.hypot(toX - fromX, toY - fromY);
    if (length < 3 * ARROW) return;
    const along: [number, number] = [((toX - fromX) / length) * ARROW, ((toY - fromY) / length) * ARROW];
    paintArrowhead(context, [fromX + 0.62 * (toX - fromX), fromY + 0.62 * (toY - fromY)], along, 0.6);
  }

  private paintSelection(context: DrawingContext, encoding: Encoding, view: ViewTransform): void {
    const { model, halfLinks } = this;
    const { theme, state } = encoding;
    halfLinks.strokeUnusedRoutes(context, encoding, view);
    const chosen = selectedNodes(encoding);
    if (chosen.size && encoding.value) {
      // If links are coloured by a property, the links of selected nodes are highlighted.
      context.strokeStyle = theme.chosen;
      context.lineWidth = 1.5;
      const ends = Array.from({ length: 2 * model.links }, (_, end) => end);
      const own = ends.filter((end) => encoding.steps[end] !== HIDDEN && chosen.has(model.endNode[end]));
      halfLinks.stroke(context, [...own, ...own.map((end) => end ^ 1)], view);
    }
    context.strokeStyle = theme.chosen;
    context.lineWidth = 2;
    for (const node of chosen) {
      const [x, y] = this.at(node, view);
      context.strokeRect(x - 9, y - 9, 18, 18);
    }
    if (state.end !== undefined) this.highlight(context, state.end, view, theme.chosen);
  }

  /** Write names that overlap neither each other nor nodes. Near switches' names come first. */
  private paintNames(
    context: DrawingContext,
    encoding: Encoding,
    nodes: number[][],
    view: ViewTransform,
    width: number,
    height: number,
    marks: readonly RankMark[],
  ): void {
    const { model, projection } = this;
    const all = nodes.flat();
    const weight = (node: number): number => projection.near[node] + (model.nodeKind[node] === SWITCH ? 4 : 0);
    all.sort((one, other) => weight(other) - weight(one));
    context.font = `11px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const spacing = (view.scale * projection.size) / Math.sqrt(model.nodes + 1);
    if (spacing < 26 && model.header.colour === undefined) return;
    const labels = new Labels(0, width, height);
    for (const { x, y } of marks) labels.block(x, y, MARK_SIZE);
    // If there are many nodes, only switches have names.
    const nameable = spacing < 26 ? all.filter((node) => model.nodeKind[node] === SWITCH) : all;
    for (const node of nameable) labels.block(...this.at(node, view), NODE);
    let named = 0;
    for (const node of nameable) {
      if (named >= MOST_NAMES) break;
      const name = shorten(model.header.node_names[node]);
      const [x, y] = this.at(node, view);
      const where = [y - ASIDE, y + ASIDE].find((each) => labels.reserve(name, x, each));
      if (where === undefined) continue;
      named++;
      paintLabel(context, encoding.theme, name, x, where);
    }
  }
}
