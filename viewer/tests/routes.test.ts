// SPDX-License-Identifier: Apache-2.0
// Routes along forwarding tables, followed by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Router } from "../src/data/routes";
import { makeFlows, makeModel } from "./small_fabric";

function makeRouter(table: number[] = []): Router {
  const flows = makeFlows();
  for (const [at, port] of table.entries()) if (port !== undefined) flows.table[at] = port;
  return new Router(makeModel(), flows);
}

test("a route goes up to the common switch and down again", () => {
  const router = makeRouter();
  assert.deepEqual(router.route(0, 1), [0, 3]);
  assert.deepEqual(router.route(0, 2), [0, 8, 11, 5]);
  assert.deepEqual(router.route(3, 0), [6, 10, 9, 1]);
});

test("no route leads to oneself, to an unknown address, or through a missing entry", () => {
  assert.deepEqual(makeRouter().route(1, 1), []);
  assert.deepEqual(makeRouter().route(-1, 1), []);
  // Leaf 0 has no egress port to host 2: 255 stands for unreachable.
  assert.deepEqual(makeRouter([1, 2, 255]).route(0, 2), []);
  // Port 0 is the switch itself, port 77 has no cable.
  assert.deepEqual(makeRouter([1, 2, 0]).route(0, 2), []);
  assert.deepEqual(makeRouter([1, 2, 77]).route(0, 2), []);
});

test("a node, a port or a table that is unknown ends a route", () => {
  const follow = (changes: object): number[] => new Router(makeModel(), { ...makeFlows(), ...changes }).route(0, 2);
  assert.deepEqual(follow({ addressNode: Int32Array.of(0, 1, -1, 3) }), []);
  assert.deepEqual(follow({ addressNode: Int32Array.of(-1, 1, 2, 3) }), []);
  assert.deepEqual(follow({ addressEnd: Int32Array.of(-1, 2, 4, 6) }), []);
});

test("no table leads to an address without a column, and no table ends a route", () => {
  // The table entry before those of leaf 1 would lead to host 3.
  const table = Uint8Array.of(1, 2, 3, 2, 3, 3, 1, 2, 1, 1, 2, 2);
  const noColumn = { ...makeFlows(), table, addressColumn: Int32Array.of(0, 1, 2, -1) };
  assert.deepEqual(new Router(makeModel(), noColumn).route(2, 3), []);
  // Leaf 0 has no table.
  const noTable = { ...makeFlows(), nodeTable: Int32Array.of(-1, -1, -1, -1, -1, 4, 8) };
  assert.deepEqual(new Router(makeModel(), noTable).route(0, 3), []);
});

test("a route to a switch ends there", () => {
  const flows = {
    ...makeFlows(),
    // Address 4 is the spine's. Leaf 0 has the same egress port to the spine as to host 2.
    addressNode: Int32Array.of(0, 1, 2, 3, 6),
    addressEnd: Int32Array.of(0, 2, 4, 6, -1),
    addressColumn: Int32Array.of(0, 1, 2, 3, 2),
  };
  assert.deepEqual(new Router(makeModel(), flows).route(0, 4), [0, 8]);
});

test("hosts may be cabled to each other", () => {
  // Hosts 0 and 1, and hosts 2 and 3, are linked without a switch.
  const cabled = makeModel({ endNode: Uint32Array.of(0, 1, 2, 3, 4, 5, 4, 5, 4, 6, 5, 6) });
  const flows = { ...makeFlows(), addressEnd: Int32Array.of(0, 1, 2, 3) };
  const router = new Router(cabled, flows);
  assert.deepEqual(router.route(0, 1), [0]);
  assert.deepEqual(router.route(3, 2), [3]);
  assert.deepEqual(router.route(0, 2), []);
});

test("routes may be long and many", () => {
  // A row of 12 switches between two hosts. Link 0 leads to the first host, link 12 to the second host.
  const switches = 12;
  const row = makeModel({
    nodes: switches + 2,
    links: switches + 1,
    nodeKind: Uint8Array.from({ length: switches + 2 }, (_, node) => (node < 2 ? 0 : 1)),
    endNode: Uint32Array.from([
      0,
      2,
      ...Array.from({ length: switches - 1 }, (_, at) => [at + 2, at + 3]).flat(),
      13,
      1,
    ]),
    endPort: Uint8Array.from([1, 1, ...Array.from({ length: switches - 1 }, () => [2, 1]).flat(), 2, 1]),
  });
  const many = 200;
  const flows = {
    ...makeFlows(Array.from({ length: many }, (_, flow) => ({ from: flow % 2, to: 1 - (flow % 2), bytes: 1 }))),
    addressNode: Int32Array.of(0, 1),
    addressEnd: Int32Array.of(0, 25),
    addressColumn: Int32Array.of(0, 1),
    nodeTable: Int32Array.from({ length: switches + 2 }, (_, node) => (node < 2 ? -1 : 0)),
    table: Uint8Array.of(1, 2),
  };
  const { offset, end } = new Router(row, flows).paths;
  assert.equal(offset[many], many * (switches + 1));
  const there = Array.from({ length: switches + 1 }, (_, hop) => 2 * hop);
  assert.deepEqual([...end.subarray(offset[many - 2], offset[many - 1])], there);
  assert.deepEqual([...end.subarray(offset[many - 1])], there.map((each) => each + 1).reverse());
});

test("a loop and a wrong host end a route", () => {
  // The spine returns packets for host 2 to leaf 0.
  const flows = makeFlows();
  flows.table[8 + 2] = 1;
  assert.deepEqual(new Router(makeModel(), flows).route(0, 2), []);
  // Leaf 0 sends packets for host 2 to host 1.
  assert.deepEqual(makeRouter([1, 2, 2]).route(0, 2), []);
});

test("paths of all flows stand one after the other", () => {
  const { offset, end } = makeRouter().paths;
  assert.deepEqual([...offset], [0, 2, 6, 10]);
  assert.deepEqual([...end], [0, 3, 0, 8, 11, 5, 6, 10, 9, 1]);
});
