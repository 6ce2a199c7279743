// SPDX-License-Identifier: Apache-2.0
// Folding of a dragonfly: groups without traffic become stubs. Other groups become larger arcs of a smaller ring.

import type { Model } from "../data/model";
import type { Folding, Stub } from "./folding";

/** Angle of a stub / angle of a group in use. */
const STUB_TURN = 0.35;
/** Space between groups, in widths of a switch. */
const GAP = 1.5;
/** Height of a group's arc / half width of the group. */
const BULGE = 0.5;
/** Largest half angle of a group, in radians. With a larger angle, a ring of one group would have no inside. */
const WIDEST_TURN = 1.1;

interface Ring {
  /** [group][switch], in the order around the ring. */
  groups: number[][];
  /** Width / height of a unit of the ring. */
  stretch: number;
}

/** Return the folding of the ring; null without a ring, without groups in use, or without idle groups to fold. */
export function foldIdleGroups(model: Model, used: Uint8Array, open: readonly number[]): Folding | null {
  if (!model.nodeGroup) return null;
  const owner = findSwitches(model);
  const isUsed = new Set<number>();
  for (let node = 0; node < model.nodes; node++)
    if (used[node] && owner[node] >= 0) isUsed.add(groupOf(model, owner[node]));
  const { groups, stretch } = findRing(model);
  const isIdle = groups.map(([first]) => !isUsed.has(groupOf(model, first)));
  for (const part of split(isIdle))
    if (isIdle[part[0]] && open.includes(lowestNode(owner, new Set(part.flatMap((at) => groups[at])))))
      for (const at of part) isIdle[at] = false;
  if (!isIdle.includes(true) || !isIdle.includes(false)) return null;
  const parts = split(isIdle);
  const share = (part: readonly number[]): number => (isIdle[part[0]] ? STUB_TURN : 1);
  const unit = (2 * Math.PI) / parts.reduce((sum, part) => sum + share(part), 0);
  const half = groups.reduce((most, group) => Math.max(most, group.length), 0) / 2;
  const isAlone = parts.length === 2;
  const radius = (half + GAP) / Math.tan(Math.min(unit / 2, WIDEST_TURN));
  const [x, y] = [new Float64Array(model.nodes), new Float64Array(model.nodes)];
  const stubOf = new Int32Array(model.nodes).fill(-1);
  const stubs: Stub[] = [];
  let turn = -unit / 2;
  for (const part of parts) {
    const middle = turn + (share(part) * unit) / 2;
    turn += share(part) * unit;
    const [outX, outY] = [Math.sin(middle), Math.cos(middle)];
    const place = (node: number, out: number, aside: number): void => {
      x[node] = stretch * (outX * out + outY * aside);
      y[node] = outY * out - outX * aside;
    };
    const switches = part.flatMap((at) => groups[at]);
    if (isIdle[part[0]]) {
      const inside = new Set(switches);
      if (isAlone) for (const node of switches) [x[node], y[node]] = [0, -half - GAP];
      else for (const node of switches) place(node, radius, 0);
      const nodes = Array.from(owner.keys()).filter((node) => inside.has(owner[node]));
      for (const node of nodes) {
        [x[node], y[node]] = [x[owner[node]], y[owner[node]]];
        stubOf[node] = stubs.length;
      }
      stubs.push(makeStub(nodes, switches.length, part.length));
    } else if (isAlone)
      // A single group becomes a ring.
      switches.forEach((node, at) => {
        const along = (2 * Math.PI * (at + 0.5)) / switches.length;
        [x[node], y[node]] = [stretch * half * Math.sin(along), half * Math.cos(along)];
      });
    else
      switches.forEach((node, at) => {
        const along = (Math.PI * (at + 0.5)) / switches.length;
        place(node, radius + BULGE * half * Math.sin(along), -half * Math.cos(along));
      });
  }
  // Hosts keep their position below their switch.
  for (let node = 0; node < model.nodes; node++) {
    const at = owner[node];
    if (at < 0 || at === node || stubOf[node] >= 0) continue;
    x[node] = x[at] + model.nodeX[node] - model.nodeX[at];
    y[node] = y[at] + model.nodeY[node] - model.nodeY[at];
  }
  let links = 0;
  for (let link = 0; link < model.links; link++)
    if (stubOf[model.endNode[2 * link]] < 0 && stubOf[model.endNode[2 * link + 1]] < 0) links++;
  return { stubs, stubOf, x, y, links };
}

function groupOf({ nodeGroup }: Model, node: number): number {
  return nodeGroup?.[node] ?? -1;
}

/** Return the switch of each node: a switch itself, a host's switch, or -1 for an unconnected node. */
function findSwitches(model: Model): Int32Array {
  const owner = Int32Array.from({ length: model.nodes }, (_, node) => (groupOf(model, node) >= 0 ? node : -1));
  for (let end = 0; end < 2 * model.links; end++) {
    const [node, other] = [model.endNode[end], model.endNode[end ^ 1]];
    if (groupOf(model, node) < 0 && owner[node] < 0 && groupOf(model, other) >= 0) owner[node] = other;
  }
  return owner;
}

function findRing(model: Model): Ring {
  const switches = Array.from({ length: model.nodes }, (_, node) => node).filter((node) => groupOf(model, node) >= 0);
  const range = (values: ArrayLike<number>): [number, number] =>
    switches.reduce(
      ([least, most], node) => [Math.min(least, values[node]), Math.max(most, values[node])],
      [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    );
  const [left, right] = range(model.nodeX);
  const [bottom, top] = range(model.nodeY);
  const stretch = (right - left) / Math.max(top - bottom, 1e-9);
  const turnOf = (node: number): number =>
    Math.atan2((model.nodeX[node] - (left + right) / 2) / stretch, model.nodeY[node] - (bottom + top) / 2);
  const members = new Map<number, number[]>();
  for (const node of switches) {
    const group = members.get(groupOf(model, node));
    if (group) group.push(node);
    else members.set(groupOf(model, node), [node]);
  }
  const groups = [...members.values()].map((group) => {
    const sum = (part: (turn: number) => number): number => group.reduce((all, node) => all + part(turnOf(node)), 0);
    const middle = Math.atan2(sum(Math.sin), sum(Math.cos));
    const from = (node: number): number => Math.sin((turnOf(node) - middle) / 2);
    return { middle, group: group.sort((one, other) => from(one) - from(other)) };
  });
  return { groups: groups.sort((one, other) => one.middle - other.middle).map(({ group }) => group), stretch };
}

/** Return the groups in the order around the ring, with adjacent idle groups joined. A used group is first. */
function split(isIdle: readonly boolean[]): number[][] {
  const count = isIdle.length;
  const first = Math.max(
    isIdle.findIndex((idle, at) => !idle && isIdle[(at || count) - 1]),
    0,
  );
  const parts: number[][] = [];
  for (let step = 0; step < count; step++) {
    const at = (first + step) % count;
    const last = parts.at(-1);
    if (last && isIdle[at] && isIdle[last[0]]) last.push(at);
    else parts.push([at]);
  }
  return parts;
}

/** Return the node with the lowest index among some switches and their hosts. */
function lowestNode(owner: Int32Array, switches: Set<number>): number {
  return owner.findIndex((at) => switches.has(at));
}

function makeStub(nodes: number[], switches: number, groups: number): Stub {
  return {
    group: nodes[0],
    nodes,
    isSwitch: true,
    columns: 1.5 + 0.5 * Math.log2(nodes.length),
    hosts: nodes.length - switches,
    noun: "host",
    switches,
    label: groups > 1 ? `${groups} idle groups` : "idle group",
  };
}
