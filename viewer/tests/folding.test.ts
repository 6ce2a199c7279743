// SPDX-License-Identifier: Apache-2.0
// Folding of nodes without traffic to stubs: the folded nodes, and the positions of all nodes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Header, Model } from "../src/data/model";
import { type Folding, foldIdle } from "../src/pictures/folding";
import { foldIdleGroups } from "../src/pictures/group_folding";
import { findIdleGroups, growBlocks } from "../src/pictures/idle_groups";
import { layOutNodes } from "../src/pictures/line_layout";
import { makeModel } from "./small_fabric";

const HOSTS = 8;
const LEAVES = 4;
const PODS = 4;

/** Return a rail with nodes of the given levels, and links between `ends`. A node of level 0 is a separate host. */
function describeNodes(level: number[], x: number[], y: number[], ends: number[]): Partial<Model> {
  const nodes = level.length;
  return {
    nodes,
    links: ends.length / 2,
    nodeRail: new Uint8Array(nodes),
    nodeKind: Uint8Array.from(level, (each) => (each ? 1 : 0)),
    nodeLevel: Int32Array.from(level),
    nodeX: Float32Array.from(x),
    nodeY: Float32Array.from(y),
    nodeHost: Int32Array.from(level, (each, node) => (each ? -1 : node)),
    endNode: Uint32Array.from(ends),
  };
}

/**
 * Return a fabric of three levels: four pods of four leaf switches with eight hosts each, two switches above the leaves
 * of each pod, six switches at the top. Node 0 is host 0; hosts, leaf switches, switches of pods and of the top follow.
 */
function makeTree(changes: Partial<Model> = {}, header: Partial<Header> = {}): Model {
  const level: number[] = [];
  const x: number[] = [];
  const ends: number[] = [];
  const addRow = (count: number, row: number, width: number): void => {
    for (let at = 0; at < count; at++) {
      level.push(row);
      x.push((at + 0.5) * (width / count) - 0.5);
    }
  };
  const hosts = HOSTS * LEAVES * PODS;
  addRow(hosts, 0, hosts);
  addRow(LEAVES * PODS, 1, hosts);
  addRow(2 * PODS, 2, hosts);
  addRow(6, 3, hosts);
  const [leaf, pod, top] = [hosts, hosts + LEAVES * PODS, hosts + LEAVES * PODS + 2 * PODS];
  for (let host = 0; host < hosts; host++) ends.push(host, leaf + Math.floor(host / HOSTS));
  for (let each = 0; each < LEAVES * PODS; each++)
    for (const upper of [0, 1]) ends.push(leaf + each, pod + 2 * Math.floor(each / LEAVES) + upper);
  for (let each = 0; each < 2 * PODS; each++)
    for (let upper = 0; upper < 6; upper++) ends.push(pod + each, top + upper);
  return makeModel({ ...describeNodes(level, x, level, ends), ...changes }, header);
}

/** First leaf switch, first switch of a pod, and first top switch. */
const LEAF = 128;
const POD = 144;
const TOP = 152;

function use(model: Model, ...nodes: number[]): Uint8Array {
  const used = new Uint8Array(model.nodes);
  for (const node of nodes) used[node] = 1;
  return used;
}

/** Hosts 0 to 5 of the first leaf, host 8 of the second leaf, and switch 0 of the pod have traffic. */
function useOnePod(model: Model): Uint8Array {
  return use(model, 0, 1, 2, 3, 4, 5, 8, LEAF, LEAF + 1, POD);
}

function describe({ stubs }: Folding): [number, number, number][] {
  const all = stubs.map(({ group, nodes, isSwitch }): [number, number, number] => [
    group,
    nodes.length,
    Number(isSwitch),
  ]);
  return all.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
}

test("hosts of a leaf switch, leaf switches, pods and the top become stubs", () => {
  const model = makeTree();
  const folding = foldIdle(model, useOnePod(model), []);
  assert.ok(folding);
  assert.deepEqual(describe(folding), [
    // Hosts 9 to 15 of the second leaf are folded. The two idle hosts of the first leaf are too few.
    [9, 7, 0],
    // The pod's two other leaf switches are folded with their hosts. The three other pods are folded too.
    [16, 2, 1],
    [16, 16, 0],
    [32, 6, 1],
    [32, 12, 1],
    [32, 96, 0],
    [TOP, 6, 1],
  ]);
  const pods = folding.stubs.filter(({ group }) => group === 32);
  assert.deepEqual(new Set(pods.map(({ hosts, switches }) => `${hosts} ${switches}`)), new Set(["96 18"]));
});

test("a stub that is opened shows its nodes", () => {
  const model = makeTree();
  const folding = foldIdle(model, useOnePod(model), [9, TOP]);
  assert.ok(folding);
  assert.deepEqual(
    describe(folding).map(([group]) => group),
    [16, 16, 32, 32, 32],
  );
  for (const node of [9, 15, TOP, TOP + 5]) assert.equal(folding.stubOf[node], -1);
});

test("a stub has the distance of the next shown node in its row", () => {
  const model = makeTree();
  const { stubs, x } = layOutNodes(model, foldIdle(model, useOnePod(model), []));
  const gapOf = new Map(stubs.map(({ nodes, gap }) => [nodes[0], gap]));
  assert.equal(gapOf.get(9), Math.abs(x[8] - x[9]));
  assert.equal(gapOf.get(TOP), Number.POSITIVE_INFINITY);
});

test("what is shown keeps its order, apart from its neighbours, and hosts are under their leaf", () => {
  const model = makeTree();
  const folding = foldIdle(model, useOnePod(model), []);
  assert.ok(folding);
  const { x, stubOf } = folding;
  for (const level of [0, 1, 2, 3]) {
    const row = Array.from(model.nodeLevel.keys()).filter((node) => model.nodeLevel[node] === level);
    for (let at = 1; at < row.length; at++) {
      const [one, other] = [row[at - 1], row[at]];
      const same = stubOf[one] >= 0 && stubOf[one] === stubOf[other];
      assert.ok(same ? x[one] === x[other] : x[other] - x[one] > 0.3, `${one} at ${x[one]}, ${other} at ${x[other]}`);
    }
  }
  assert.ok(x[0] < x[LEAF] && x[LEAF] < x[7]);
  // The rows of the idle pods are stacked.
  assert.deepEqual([x[LEAF + 4], x[POD + 2]], [x[32], x[32]]);
  // Of 128 columns, fewer than a quarter remain.
  assert.ok(Math.max(...x) < 32);
});

/** Return the tree as two rails. The second rail has an adapter on each host, and mirrored rows. */
function makeRails(): Model {
  const one = makeTree();
  const twice = (values: ArrayLike<number>, change = (value: number): number => value): number[] => [
    ...Array.from(values),
    ...Array.from(values, change),
  ];
  const { nodes } = one;
  return makeTree(
    {
      nodes: 2 * nodes,
      links: 2 * one.links,
      nodeRail: Uint8Array.from({ length: 2 * nodes }, (_, node) => Number(node >= nodes)),
      nodeKind: Uint8Array.from(twice(one.nodeKind)),
      nodeLevel: Int32Array.from(twice(one.nodeLevel)),
      nodeX: Float32Array.from(twice(one.nodeX)),
      nodeY: Float32Array.from(twice(one.nodeY, (value) => -value)),
      nodeHost: Int32Array.from(twice(one.nodeHost)),
      endNode: Uint32Array.from(twice(one.endNode, (node) => node + nodes)),
    },
    { rails: [0, 1].map((rail) => ({ name: String(rail), has_levels: true })) },
  );
}

test("a rail that no bytes cross becomes one stub in one row, though its adapters are of the job's hosts", () => {
  const model = makeRails();
  const half = model.nodes / 2;
  const used = new Uint8Array(model.nodes);
  used.fill(1, 0, half + LEAF);
  const folding = foldIdle(model, used, []);
  assert.ok(folding);
  assert.deepEqual(describe(folding), [[half + LEAF, 30, 1]]);
  const layout = layOutNodes(model, folding);
  assert.deepEqual(
    layout.rows.map(({ name }) => name),
    ["level 3a", "level 2a", "level 1a", "hosts", "1b 2b 3b"],
  );
  // Every node with traffic keeps its position, and no link leads to the stub.
  for (let node = 0; node < half; node++) assert.equal(folding.stubOf[node], -1);
  assert.equal(layout.drawn?.subarray(model.links / 2).includes(1), false);
  assert.equal(layout.drawn?.subarray(0, model.links / 2).includes(0), false);
  assert.equal(foldIdle(model, used, [half + LEAF])?.stubs.length, 0);
});

test("with an idle rail, idle pods of the other one are folded too", () => {
  const model = makeRails();
  const half = model.nodes / 2;
  const used = new Uint8Array(model.nodes);
  used.set(useOnePod(makeTree()));
  const folding = foldIdle(model, used, []);
  assert.ok(folding);
  const labels = new Set(folding.stubs.map(({ label }) => label));
  assert.deepEqual(labels, new Set([undefined, "idle rail: 30 switches"]));
  assert.ok(Math.max(...folding.x) < 32);
  assert.equal(folding.stubOf[half + LEAF], folding.stubOf[half + TOP]);
});

/** Return cells of four leaf switches and two top switches. Each top switch is linked to its peers in all cells. */
function makeCells(cells: number): Model {
  const level: number[] = [];
  const x: number[] = [];
  const ends: number[] = [];
  const hosts = HOSTS * LEAVES * cells;
  for (const [row, count] of [hosts, LEAVES * cells, 2 * cells].entries())
    for (let at = 0; at < count; at++) {
      level.push(row);
      x.push((at + 0.5) * (hosts / count) - 0.5);
    }
  const [leaf, top] = [hosts, hosts + LEAVES * cells];
  for (let host = 0; host < hosts; host++) ends.push(host, leaf + Math.floor(host / HOSTS));
  for (let each = 0; each < LEAVES * cells; each++)
    for (const upper of [0, 1]) ends.push(leaf + each, top + 2 * Math.floor(each / LEAVES) + upper);
  for (let each = 0; each < 2 * cells; each++)
    for (let other = each + 2; other < 2 * cells; other += 2) ends.push(top + each, top + other);
  const nodes = level.length;
  return makeTree({
    nodes,
    links: ends.length / 2,
    nodeRail: new Uint8Array(nodes),
    nodeKind: Uint8Array.from(level, (each) => (each ? 1 : 0)),
    nodeLevel: Int32Array.from(level),
    nodeX: Float32Array.from(x),
    nodeY: Float32Array.from(level),
    nodeHost: Int32Array.from(level, (each, node) => (each ? -1 : node)),
    endNode: Uint32Array.from(ends),
  });
}

test("idle cells whose top switches are connected to one another become stubs", () => {
  const model = makeCells(6);
  const [leaf, top] = [192, 192 + 24];
  // Two hosts of the first cell, one host of the third cell, and a top switch of each of these cells have traffic.
  const used = use(model, 0, 8, 64, leaf, leaf + 1, leaf + 8, top, top + 4);
  const folding = foldIdle(model, used, []);
  assert.ok(folding);
  const groups = new Map(folding.stubs.map(({ group, hosts, switches }) => [group, `${hosts} ${switches}`]));
  // The second cell is a group, and the last three cells are one group.
  assert.equal(groups.get(32), "32 6");
  assert.equal(groups.get(96), "96 18");
  assert.equal(folding.stubOf[top + 2], folding.stubOf[top + 3]);
  assert.equal(folding.stubOf[top + 6], folding.stubOf[top + 11]);
  assert.equal(folding.stubOf[top + 1], -1);
});

/** Return a dragonfly of some groups of four switches with two hosts each, groups on a ring. */
function makeGroups(groups: number): Model {
  const [level, x, y, group, ends]: number[][] = [[], [], [], [], []];
  const switches = 4 * groups;
  for (let at = 0; at < switches; at++) {
    const turn = (2 * Math.PI * (at + 0.5)) / switches;
    level.push(1);
    x.push(30 * Math.sin(turn));
    y.push(10 * Math.cos(turn));
    group.push(Math.floor(at / 4));
  }
  for (let at = 0; at < switches; at++)
    for (const aside of [-0.5, 0.5]) {
      ends.push(level.length, at);
      level.push(0);
      x.push(x[at] + aside);
      y.push(y[at] - 0.4);
      group.push(-1);
    }
  for (let at = 0; at < switches; at++) ends.push(at, (at + 1) % switches);
  const nodeGroup = Int32Array.from(group);
  return makeModel(
    { ...describeNodes(level, x, y, ends), nodeGroup },
    { rails: [{ name: "dragonfly", has_levels: false }] },
  );
}

test("idle groups of a dragonfly become stubs of a smaller ring, and hosts stay at their switch", () => {
  const model = makeGroups(16);
  const hostsOf = (at: number): number[] => [64 + 2 * at, 65 + 2 * at];
  // Hosts and switches of the second and of the fifth group have traffic.
  const used = use(model, 4, 5, 16, ...hostsOf(4), ...hostsOf(5), ...hostsOf(16));
  const folding = foldIdleGroups(model, used, []);
  assert.ok(folding);
  assert.deepEqual(
    folding.stubs.map(({ label, hosts, switches }) => [label, hosts, switches]),
    [
      ["2 idle groups", 16, 8],
      ["12 idle groups", 96, 48],
    ],
  );
  const { x, y, stubOf } = folding;
  const span = (values: ArrayLike<number>): number => Math.max(...Array.from(values)) - Math.min(...Array.from(values));
  assert.ok(span(x) < span(model.nodeX) / 2 && span(y) < span(model.nodeY));
  for (const at of [4, 5, 6, 7, 16, 19])
    for (const host of hostsOf(at)) {
      assert.equal(stubOf[host], -1);
      assert.ok(Math.abs(x[host] - x[at] - (model.nodeX[host] - model.nodeX[at])) < 1e-4);
    }
  // No switch with traffic is at the position of another switch or of a stub.
  const places = [4, 5, 6, 7, 16, 17, 18, 19, ...folding.stubs.map(({ nodes }) => nodes[0])];
  for (const one of places)
    for (const other of places)
      assert.ok(one === other || Math.hypot(x[one] - x[other], 3 * (y[one] - y[other])) > 1, `${one} ${other}`);
  assert.equal(foldIdleGroups(model, new Uint8Array(model.nodes).fill(1), []), null);
});

test("a stub of a dragonfly opens its own groups", () => {
  const model = makeGroups(16);
  const used = use(model, 4, 16);
  const [few, many] = foldIdleGroups(model, used, [])?.stubs ?? [];
  const opened = foldIdleGroups(model, used, [few.group]);
  assert.ok(opened);
  assert.deepEqual(
    opened.stubs.map(({ label, group }) => [label, group]),
    [["12 idle groups", many.group]],
  );
  for (const node of few.nodes) assert.equal(opened.stubOf[node], -1);
  assert.equal(foldIdleGroups(model, used, [few.group, many.group]), null);
});

test("one group in use is a ring of its own, with its stub outside", () => {
  const model = makeGroups(16);
  const folding = foldIdleGroups(model, use(model, 4, 6), []);
  assert.ok(folding);
  const { x, y, stubs } = folding;
  const group = [4, 5, 6, 7];
  const middle = [x, y].map((axis) => group.reduce((sum, at) => sum + axis[at] / group.length, 0));
  const stub = stubs[0].nodes[0];
  const [wide, high] = [x, y].map(
    (axis) => Math.max(...group.map((at) => axis[at])) - Math.min(...group.map((at) => axis[at])),
  );
  assert.ok(3 * high > 0.8 * wide, `${wide} ${high}`);
  // Switches are on all sides of their middle, and the stub is below them.
  for (const [axis, at] of [x, y].map((each, number) => [each, middle[number]] as const)) {
    assert.ok(group.some((node) => axis[node] > at + 0.1));
    assert.ok(group.some((node) => axis[node] < at - 0.1));
  }
  assert.ok(group.every((node) => y[node] > y[stub] + 0.5));
});

test("nothing is folded without traffic, with traffic everywhere, in a plane, or where there is space", () => {
  const model = makeTree();
  assert.equal(foldIdle(model, use(model), []), null);
  assert.equal(foldIdle(model, new Uint8Array(model.nodes).fill(1), []), null);
  const plane = makeTree({}, { rails: [{ name: "plane", has_levels: false }] });
  assert.equal(foldIdle(plane, useOnePod(plane), []), null);
  assert.equal(foldIdle(makeModel(), Uint8Array.of(1, 0, 0, 0, 1, 0, 0), []), null);
});

test("a host with traffic on one rail keeps its column on the other", () => {
  // The tree's second pair of pods is a second rail, with hosts in the columns of the first pair.
  const single = makeTree();
  const half = 64;
  const nodeX = Float32Array.from(single.nodeX, (x, node) => (single.nodeLevel[node] ? x : x % half));
  const model = makeTree({ nodeX });
  const groups = findIdleGroups(model, growBlocks(model), use(model, 0, LEAF));
  // Hosts 0 and 64 share a column, which joins their leaf switches to one block.
  assert.ok(groups.every((group) => !group.includes(64) && !group.includes(LEAF + 8)));
  assert.ok(groups.some((group) => group.includes(1) && group.includes(65)));
});

test("links of stubs are drawn once, those of idle switches to each switch above them are not", () => {
  const model = makeTree();
  const folding = foldIdle(model, useOnePod(model), [TOP]);
  assert.ok(folding);
  const { drawn, stubs } = layOutNodes(model, folding);
  assert.ok(drawn);
  const count = (low: (node: number) => boolean, high: (node: number) => boolean): number => {
    let sum = 0;
    for (let link = 0; link < model.links; link++)
      if (drawn[link] && low(model.endNode[2 * link]) && high(model.endNode[2 * link + 1])) sum++;
    return sum;
  };
  const isLeaf = (node: number): boolean => node >= LEAF && node < POD;
  // The first leaf has 6 + 2 hosts, the second leaf a host and a stub. Two links join stubs of hosts and leaves.
  assert.equal(
    count((node) => node < LEAF, isLeaf),
    8 + 2 + 2,
  );
  const isIdlePod = (node: number): boolean => node >= POD + 2 && node < TOP;
  assert.equal(
    count(isIdlePod, (node) => node >= TOP),
    0,
  );
  assert.equal(stubs.length, 6);
});
