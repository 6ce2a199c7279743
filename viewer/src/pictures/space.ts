// SPDX-License-Identifier: Apache-2.0
// The network in space, where its nodes have places there: turned by the hand, near things over far ones.

import { type Model, SWITCH } from "../data/document";
import { STEPS } from "./colours";
import { type Drawing, FONT, type Hit, LETTER, type Place, shorten, type Transform } from "./drawing";
import { Halves, paintArrow } from "./halves";
import type { Ink } from "./ink";
import { chosenNodes, HIDDEN, isOfSome, type Look, showsNode } from "./look";
import { Projection } from "./projection";
import { combine, normalise, rollBall, type Turn, UPRIGHT } from "./rotation";

/** What is at about one depth is drawn together. */
const SLICES = 8;
/** Links that are drawn while the hand turns the picture; of more, some are left out until it rests. */
const HURRIED = 12000;
const ARROW = 7;
const MOST_ARROWS = 4000;
const MOST_NAMES = 120;
const SIDES = 8;

export class Space implements Drawing {
  readonly name = "space";
  private readonly seen: Projection;
  private readonly halves: Halves;
  private orientation: Turn = UPRIGHT;
  private hurried = false;

  constructor(
    private readonly model: Model,
    private readonly nodeColour: (node: number, look: Look) => string | null,
  ) {
    this.seen = new Projection(model.space ?? new Float32Array(3 * model.nodes), model.nodes, model.endNode);
    this.halves = new Halves(model, this.seen);
    this.seen.turn(this.orientation);
  }

  get width(): number {
    return this.seen.size;
  }

  get height(): number {
    return this.seen.size;
  }

  get turned(): number[] | undefined {
    return this.orientation === UPRIGHT ? undefined : this.orientation.map((each) => Number(each.toPrecision(6)));
  }

  turnTo(turn: number[] | undefined): void {
    this.hurried = false;
    if (String(turn ?? "") === String(this.turned ?? "")) return;
    this.orientation = turn ? normalise(turn) : UPRIGHT;
    this.seen.turn(this.orientation);
  }

  roll(from: [number, number], to: [number, number]): void {
    this.hurried = true;
    this.orientation = combine(rollBall(from, to), this.orientation);
    this.seen.turn(this.orientation);
  }

  placeOfNode(node: number): [number, number] {
    return [this.seen.x[node], this.seen.y[node]];
  }

  placeOfEnd(end: number): Place {
    return this.halves.placeOf(end);
  }

  /** The nearest to the eye of the nodes there, else the nearest half of a link, one that has a colour before others. */
  find(look: Look, x: number, y: number, reach: number): Hit {
    const { model, seen } = this;
    let found: number | undefined;
    let best = Number.NEGATIVE_INFINITY;
    for (let node = 0; node < model.nodes; node++) {
      if (Math.hypot(seen.x[node] - x, seen.y[node] - y) > reach || seen.near[node] <= best) continue;
      if (showsNode(look, node)) [best, found] = [seen.near[node], node];
    }
    return found === undefined ? { end: this.halves.find(look, x, y, reach) } : { node: found };
  }

  paint(ink: Ink, look: Look, view: Transform, width: number, height: number): void {
    const links = this.sortLinks(look);
    const nodes = this.sortNodes(look, view, width, height);
    const shown = links.flat(2).length;
    const thin = Math.min(Math.max(40 / Math.sqrt(shown + 1), 0.5), 2.6);
    for (let slice = 0; slice < SLICES; slice++) {
      links[slice].forEach((ends, step) => {
        if (!ends.length) return;
        ink.strokeStyle = step ? look.ramp[step - 1] : look.theme.idle;
        ink.lineWidth = thin * (0.6 + (0.8 * slice) / SLICES) * (step ? 1 : 0.6);
        this.halves.stroke(ink, ends, view);
      });
      this.paintNodes(ink, look, nodes[slice], view);
    }
    this.paintArrows(ink, look, links, view);
    this.paintChosen(ink, look, view);
    if (!this.hurried) this.paintNames(ink, look, nodes, view, width);
  }

  mark(ink: Ink, end: number, view: Transform, colour: string): void {
    this.halves.mark(ink, end, view, colour);
  }

  private sliceOf(at: number): number {
    return Math.min(SLICES - 1, Math.max(0, Math.floor(((this.seen.near[at] + 1) / 2) * SLICES)));
  }

  /** [slice][step], link ends; those of one slice by colour, the strongest last. */
  private sortLinks(look: Look): number[][][] {
    const { model, seen } = this;
    const sorted = Array.from({ length: SLICES }, () => Array.from({ length: STEPS + 1 }, (): number[] => []));
    const stride = this.hurried ? Math.ceil(model.links / HURRIED) : 1;
    for (let link = 0; link < model.links; link += stride) {
      const slices = sorted[this.sliceOf(seen.nodes + link)];
      for (const end of [2 * link, 2 * link + 1]) {
        // An arrow has one colour as a whole.
        const step = look.steps[model.simplex[end ^ 1] && look.value ? end ^ 1 : end];
        if (step !== HIDDEN) slices[step].push(end);
      }
    }
    return sorted;
  }

  private sortNodes(look: Look, view: Transform, width: number, height: number): number[][] {
    const sorted = Array.from({ length: SLICES }, (): number[] => []);
    for (let node = 0; node < this.model.nodes; node++) {
      const [x, y] = this.at(node, view);
      if (x < -12 || y < -12 || x > width + 12 || y > height + 12 || !showsNode(look, node)) continue;
      sorted[this.sliceOf(node)].push(node);
    }
    return sorted;
  }

  private at(node: number, { scale, x, y }: Transform): [number, number] {
    return [x + this.seen.x[node] * scale, y + this.seen.y[node] * scale];
  }

  /** Switches as squares, hosts round, both with a rim of the ground, so that what is behind them ends there. */
  private paintNodes(ink: Ink, look: Look, nodes: number[], view: Transform): void {
    const { model, seen } = this;
    const room = (view.scale * seen.size) / Math.sqrt(model.nodes + 1);
    for (const node of nodes) {
      const [x, y] = this.at(node, view);
      const colour = this.nodeColour(node, look);
      const isSwitch = model.nodeKind[node] === SWITCH;
      const least = isSwitch ? 2.2 : 1.2;
      const size = Math.min(Math.max(room * 0.11, least), isSwitch ? 8 : 5.5) * (1 + 0.3 * seen.near[node]);
      const fill = colour ?? (isSwitch ? look.theme.text : look.theme.node);
      const rims: [string, number][] = size > 2.5 ? [[look.theme.ground, size + 1.2]] : [];
      for (const [paint, radius] of [...rims, [fill, size] as [string, number]]) {
        ink.fillStyle = paint;
        if (isSwitch || radius < 2) ink.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        else fillRound(ink, x, y, radius);
      }
    }
  }

  /** Which way links lead that lead one way, and which way the traffic of a choice goes. */
  private paintArrows(ink: Ink, look: Look, links: number[][][], view: Transform): void {
    const chosen = !look.value && isOfSome(look.state);
    const { simplex } = this.model;
    let count = 0;
    ink.lineWidth = 1.5;
    links.forEach((steps) => {
      steps.forEach((ends, step) => {
        for (const each of ends) {
          if (!simplex[each] && !(chosen && step)) continue;
          if (count++ > MOST_ARROWS) return;
          ink.strokeStyle = look.theme.ground;
          ink.fillStyle = step ? look.ramp[step - 1] : look.theme.node;
          this.paintArrow(ink, each, view);
        }
      });
    });
  }

  private paintArrow(ink: Ink, end: number, view: Transform): void {
    const { endNode } = this.model;
    const [fromX, fromY] = this.at(endNode[end], view);
    const [toX, toY] = this.at(endNode[end ^ 1], view);
    const length = Math.hypot(toX - fromX, toY - fromY);
    if (length < 3 * ARROW) return;
    const along: [number, number] = [((toX - fromX) / length) * ARROW, ((toY - fromY) / length) * ARROW];
    paintArrow(ink, [fromX + 0.62 * (toX - fromX), fromY + 0.62 * (toY - fromY)], along, 0.6);
  }

  private paintChosen(ink: Ink, look: Look, view: Transform): void {
    const { model, halves } = this;
    const { theme, state } = look;
    halves.strokeWays(ink, look, view);
    const chosen = chosenNodes(look);
    if (chosen.size && look.value) {
      // Without traffic, what is chosen of the network is its links.
      ink.strokeStyle = theme.chosen;
      ink.lineWidth = 1.5;
      const ends = Array.from({ length: 2 * model.links }, (_, end) => end);
      const own = ends.filter((end) => look.steps[end] !== HIDDEN && chosen.has(model.endNode[end]));
      halves.stroke(ink, [...own, ...own.map((end) => end ^ 1)], view);
    }
    ink.strokeStyle = theme.chosen;
    ink.lineWidth = 2;
    for (const node of chosen) {
      const [x, y] = this.at(node, view);
      ink.strokeRect(x - 9, y - 9, 18, 18);
    }
    if (state.end !== undefined) this.mark(ink, state.end, view, theme.chosen);
  }

  /** Names, those of near switches first, wherever they hide no other name. */
  private paintNames(ink: Ink, look: Look, nodes: number[][], view: Transform, width: number): void {
    const { model, seen } = this;
    const all = nodes.flat();
    const weight = (node: number): number => seen.near[node] + (model.nodeKind[node] === SWITCH ? 4 : 0);
    all.sort((one, other) => weight(other) - weight(one));
    ink.font = `11px ${FONT}`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    const boxes: [number, number, number, number][] = [];
    const room = (view.scale * seen.size) / Math.sqrt(model.nodes + 1);
    if (room < 26) return;
    for (const node of all) {
      if (boxes.length >= MOST_NAMES) break;
      const name = shorten(model.header.node_names[node]);
      const [x, y] = this.at(node, view);
      const half = (name.length * LETTER) / 2 + 2;
      const box: [number, number, number, number] = [x - half, y - 22, x + half, y - 8];
      if (box[0] < 0 || box[2] > width || box[1] < 0) continue;
      if (boxes.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]))
        continue;
      boxes.push(box);
      ink.strokeStyle = look.theme.ground;
      ink.lineWidth = 3;
      ink.strokeText(name, x, y - 15);
      ink.fillStyle = look.theme.text;
      ink.fillText(name, x, y - 15);
    }
  }
}

function fillRound(ink: Ink, x: number, y: number, radius: number): void {
  ink.beginPath();
  for (let side = 0; side < SIDES; side++) {
    const angle = ((side + 0.5) / SIDES) * 2 * Math.PI;
    const corner: [number, number] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
    if (side) ink.lineTo(...corner);
    else ink.moveTo(...corner);
  }
  ink.closePath();
  ink.fill();
}
