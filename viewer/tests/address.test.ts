// SPDX-License-Identifier: Apache-2.0
// The state in the address: written states are read back, and parameters out of range are ignored.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readState, writeState } from "../src/address";
import { differs, FILTER, SELECTION, type State } from "../src/state";
import { makeModel } from "./small_fabric";

const MODEL = makeModel({ linkValues: [{ name: "delay", unit: "s", value: new Float64Array(12) }] });

const FULL: State = {
  ranks: [0, 3],
  hosts: [1],
  source: 0,
  destination: 3,
  from: 2,
  to: 1,
  region: 1,
  operation: 0,
  job: 0,
  site: 0,
  end: 11,
  node: 6,
  time: [0.25, 0.75],
  rail: 0,
  level: 2,
  load: [0, 5e12],
  change: [-3, 4],
  run: 1,
  against: 2,
  compare: "difference",
  by: "share",
  log: true,
  theme: "dark",
  picture: "cells",
  used: true,
  panel: "links",
  value: 0,
  turn: [0.5, -0.5, 0.5, 0.5],
  at: [12.5, 40, 3],
};

test("every part is read as it was written", () => {
  assert.deepEqual(readState(writeState(FULL), MODEL, 3), FULL);
});

test("a state is written as documented", () => {
  assert.equal(
    writeState({ region: 1, ranks: [5, 6], log: true, used: false, end: undefined }),
    "#region=1&ranks=5,6&log=1",
  );
  assert.equal(writeState({ at: [1 / 3, 2, 3] }), "#at=0.333333333,2,3");
});

test("indices out of range and malformed values are ignored", () => {
  const fragments = [
    "#region=2&operation=2&job=1&site=1&end=12&node=7&rail=1&run=3&source=4&from=4&value=1",
    "#region=-1&end=1e1&ranks=0,4&hosts=,&time=1&load=a,b&change=1,2,3&at=1,2&turn=1,2,3",
    "#time=,1&load=1,&at=,,&turn=1,2,,3",
    "#theme=blue&compare=all&by=weight&log=true&picture=<b>&panel=A&used=0&colour=0",
    "#constructor=1&__proto__=2",
  ];
  for (const fragment of fragments) assert.deepEqual(readState(fragment, MODEL, 3), {}, fragment);
});

test("ranks and hosts have limits of their own", () => {
  const wide = makeModel({}, { rank_names: Array.from({ length: 8 }, (_, rank) => String(rank)) });
  const state = { ranks: [7], hosts: [3], source: 6, destination: 7, from: 3, to: 2 };
  assert.deepEqual(readState(writeState(state), wide, 1), state);
  assert.deepEqual(readState("#hosts=4&from=7&to=4&ranks=8", wide, 1), {});
});

test("a list is cut after 10,000 indices", () => {
  const { ranks } = readState(`#ranks=${new Array(10_001).fill("0").join()}`, MODEL, 1);
  assert.equal(ranks?.length, 10_000);
});

test("no text can add another part", () => {
  assert.equal(writeState({ panel: "a&region=1" }), "#panel=a%26region%3D1");
});

test("the empty and the foreign fragment are the default state", () => {
  assert.deepEqual(readState("", MODEL, 1), {});
  assert.deepEqual(readState("#section-2", MODEL, 1), {});
});

test("states differ in the parts asked for", () => {
  assert.equal(differs({ ranks: [1, 2] }, { ranks: [1, 2], log: true }, SELECTION), false);
  assert.equal(differs({ ranks: [1, 2] }, { ranks: [1, 3] }, SELECTION), true);
  assert.equal(differs({ load: [1, 2] }, {}, FILTER), true);
  assert.equal(differs({ time: [0, 1] }, { time: [0, 2] }, SELECTION), true);
  assert.equal(differs({ change: [0, 1] }, {}, FILTER), true);
});
