// SPDX-License-Identifier: Apache-2.0
// Routes of a selected pair of ranks or hosts, followed by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadTable } from "../src/data/load_table";
import type { Flows } from "../src/data/model";
import type { Selection } from "../src/state";
import { makeFlows, makeModel } from "./small_fabric";

function routesOf(selection: Selection, flows: Partial<Flows> = {}, rails = 1): number[][] | null {
  const rail = { name: "rail", has_levels: true };
  const model = makeModel({ flows: { ...makeFlows(), ...flows } }, { rails: new Array(rails).fill(rail) });
  return new LoadTable(model).pairRoutes(selection);
}

test("half a pair has no route", () => {
  assert.equal(routesOf({ source: 0 }), null);
  assert.equal(routesOf({ destination: 0 }), null);
  assert.equal(routesOf({ from: 0 }), null);
  assert.equal(routesOf({ to: 0 }), null);
});

test("a pair of ranks has a route on each rail on which both have an address", () => {
  // There are two rails; ranks have addresses only on the first rail.
  const rankAddress = Int32Array.of(0, -1, 1, -1, 2, -1, 3, -1);
  assert.deepEqual(routesOf({ source: 0, destination: 2 }, { rankAddress }, 2), [[0, 8, 11, 5], []]);
  assert.deepEqual(routesOf({ source: 3, destination: 2 }, { rankAddress }, 2), [[6, 5], []]);
});

/** Host 2 has a second address, 4. The forwarding tables send packets for address 4 to host 3. */
const TWO_ADDRESSES = {
  addressNode: Int32Array.of(0, 1, 2, 3, 2),
  addressEnd: Int32Array.of(0, 2, 4, 6, 4),
  addressColumn: Int32Array.of(0, 1, 2, 3, 3),
};

test("a pair of hosts takes the addresses that they use between them", () => {
  const flows = { ...makeFlows([{ from: 0, to: 2, bytes: 1 }]), ...TWO_ADDRESSES };
  assert.deepEqual(routesOf({ from: 0, to: 2 }, flows), [[0, 8, 11, 5]]);
});

test("a pair of hosts without traffic takes addresses that tables lead to", () => {
  const addressColumn = Int32Array.of(0, 1, 2, 3, -1);
  assert.deepEqual(routesOf({ from: 1, to: 2 }, { ...TWO_ADDRESSES, addressColumn }), [[2, 8, 11, 5]]);
});

test("addresses without a node are of no host", () => {
  const flows = { ...TWO_ADDRESSES, addressNode: Int32Array.of(0, 1, 2, 3, -1) };
  assert.deepEqual(routesOf({ from: 1, to: 2 }, flows), [[2, 8, 11, 5]]);
});
