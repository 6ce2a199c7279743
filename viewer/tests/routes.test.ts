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
