// SPDX-License-Identifier: Apache-2.0
// The scene of a state: one run, two runs side by side, their difference, or a property of links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BYTES, SHARES } from "../src/data/measure";
import { IDLE } from "../src/pictures/encoding";
import { THEMES } from "../src/pictures/palette";
import type { Run } from "../src/run";
import { type Scene, SceneBuilder, withState } from "../src/scene";
import type { State } from "../src/state";
import { makeFlows, makeRun } from "./small_fabric";

const BEFORE = makeRun({ flows: makeFlows([{ from: 0, to: 1, bytes: 100 }]) }, { name: "before", bytes_routed: "100" });
const AFTER = makeRun(
  {
    flows: makeFlows([
      { from: 0, to: 1, bytes: 400 },
      { from: 2, to: 3, bytes: 50, region: 1 },
    ]),
  },
  { name: "after", bytes_routed: "450" },
);
const COUNTED = makeRun(
  {
    flows: null,
    load: BigUint64Array.from([70n, ...new Array<bigint>(11).fill(0n)]),
    known: Uint8Array.from({ length: 12 }, (_, end) => (end === 3 ? 0 : 1)),
  },
  { name: "counted" },
);

function show(state: State, runs: Run[] = [BEFORE, AFTER]): Scene {
  return new SceneBuilder(runs).make(state, THEMES.light);
}

function namesOf({ panes }: Scene): string[] {
  return panes.map(({ name }) => name);
}

test("a file of one run has one picture without a name", () => {
  const scene = show({}, [BEFORE]);
  assert.deepEqual(namesOf(scene), [""]);
  assert.equal(scene.compared, null);
  assert.equal(scene.listed, scene.panes[0].encoding);
});

test("two runs are side by side on one scale, the listed one first", () => {
  const scene = show({});
  assert.deepEqual(namesOf(scene), ["before", "after"]);
  assert.deepEqual(
    scene.panes.map(({ encoding }) => encoding.scale.most),
    [32_000, 32_000],
  );
  assert.equal(scene.listed.run, BEFORE);
  assert.equal(scene.compared?.run, AFTER);
  const swapped = show({ run: 1 });
  assert.deepEqual(namesOf(swapped), ["after", "before"]);
  assert.deepEqual(
    swapped.panes.map(({ encoding }) => encoding.scale.most),
    [32_000, 32_000],
  );
});

test("without a comparison the listed run is alone", () => {
  const scene = show({ compare: "none" });
  assert.deepEqual(namesOf(scene), [""]);
  assert.equal(scene.compared, null);
  // 100 bytes at 100 Gb/s, in picoseconds.
  assert.equal(scene.listed.scale.most, 8000);
  assert.equal(show({ compare: "none", by: "bytes" }).listed.scale.most, 100);
});

test("the difference is what the second run sends more than the first", () => {
  const timed = show({ compare: "difference" }).panes[0].encoding;
  assert.deepEqual([timed.amounts.exact(0), timed.amounts.exact(4)], [24_000n, 4000n]);
  const scene = show({ compare: "difference", by: "bytes" });
  assert.deepEqual(namesOf(scene), ["after − before"]);
  const [{ encoding }] = scene.panes;
  assert.equal(encoding.isChange, true);
  assert.deepEqual([encoding.amounts.exact(0), encoding.amounts.exact(4)], [300n, 50n]);
  // Lists show the first run, also if the picture shows the difference.
  assert.equal(scene.listed.isChange, false);
  assert.equal(scene.listed.run, BEFORE);
  // Link direction 4 has traffic only in the second run, link direction 10 in neither run.
  assert.notEqual(encoding.steps[4], IDLE);
  assert.equal(encoding.steps[10], IDLE);
});

test("a load that one run does not know has no difference", () => {
  const [{ encoding }] = show({ compare: "difference" }, [BEFORE, COUNTED]).panes;
  assert.equal(BEFORE.table.loadOfEnds({}).exact(3), 100n);
  assert.equal(encoding.steps[3], IDLE);
  assert.notEqual(encoding.steps[0], IDLE);
});

test("the measure can change from one state to the next", () => {
  const builder = new SceneBuilder([BEFORE, AFTER]);
  const measureOf = (state: State): unknown => builder.make(state, THEMES.light).compared?.comparison.measure;
  assert.equal(measureOf({}), BYTES);
  assert.equal(measureOf({ by: "share" }), SHARES);
  assert.equal(measureOf({ by: "bytes" }), BYTES);
});

test("loads are kept until the selection changes", () => {
  const builder = new SceneBuilder([AFTER]);
  const all = builder.amountsOf(AFTER, {});
  assert.equal(builder.amountsOf(AFTER, {}), all);
  builder.forget();
  assert.equal(builder.amountsOf(AFTER, { region: 1 }).exact(0), 0n);
});

test("a property of links takes the place of loads, of one run alone", () => {
  const delay = { name: "delay", unit: "s", value: new Float64Array(12).fill(1) };
  const measured = makeRun({ linkValues: [delay] }, { name: "measured" });
  const scene = show({ value: 0 }, [measured, AFTER]);
  assert.deepEqual(namesOf(scene), [""]);
  assert.equal(scene.listed.value, delay);
  assert.equal(scene.compared, null);
});

test("a picture says which parts of the selection its run cannot apply", () => {
  assert.deepEqual(namesOf(show({ ranks: [0] }, [BEFORE, COUNTED])), [
    "before",
    "counted (all traffic: senders unknown)",
  ]);
  assert.deepEqual(namesOf(show({}, [BEFORE, COUNTED])), ["before", "counted"]);
  assert.deepEqual(namesOf(show({ time: [0, 1] })), [
    "before (whole run: no time line)",
    "after (whole run: no time line)",
  ]);
});

test("a state that draws nothing else keeps what is drawn", () => {
  const shown = show({});
  const named = withState(shown, { panel: "ranks" });
  assert.equal(named.listed, named.panes[0].encoding);
  assert.equal(named.panes[1].encoding.state.panel, "ranks");
  assert.equal(named.listed.steps, shown.listed.steps);
  const difference = withState(show({ compare: "difference" }), { compare: "difference", panel: "ranks" });
  assert.notEqual(difference.listed, difference.panes[0].encoding);
  assert.deepEqual([difference.listed.isChange, difference.listed.state.panel], [false, "ranks"]);
});
