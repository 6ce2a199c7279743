// SPDX-License-Identifier: Apache-2.0
// Search on the small fabric.
import assert from "node:assert/strict";
import { test } from "node:test";
import { search } from "../src/search";
import { makeFlows, makeRun } from "./small_fabric";

const RUN = makeRun();

test("a number finds the rank, then the LID, then names", () => {
  assert.deepEqual(search(RUN, "2"), [
    { text: "rank 2 on host2 HCA", part: { ranks: [2] } },
    { text: "LID 2: host1 HCA", part: { node: 1 } },
    { text: "host host2", part: { hosts: [2] } },
  ]);
});

test("a keyword restricts the search to its kind", () => {
  assert.deepEqual(
    search(RUN, "rank 2").map(({ part }) => part),
    [{ ranks: [2] }],
  );
  assert.deepEqual(
    search(RUN, "LID 0x11").map(({ text }) => text),
    ["LID 17: spine"],
  );
  assert.deepEqual(search(RUN, "lid 0X11"), search(RUN, "lid 17"));
  assert.deepEqual(search(RUN, "lid 20"), []);
  assert.deepEqual(search(RUN, "host leaf"), []);
  assert.deepEqual(
    search(RUN, "guid 00b1").map(({ part }) => part),
    [{ node: 5 }],
  );
});

test("a GUID is found by any part of four digits or more, in any case", () => {
  const guids = [0x2c90300fa0010n, 0x2c90300fa0020n, 1n, 2n, 3n, 4n, 0x2c90300fb00c0n];
  const run = makeRun({ nodeGuid: BigUint64Array.from(guids) });
  const found = (query: string): unknown[] => search(run, query).map(({ part }) => part);
  assert.deepEqual(found("0x0002c90300fb00c0"), [{ node: 6 }]);
  assert.deepEqual(found("FA00"), [{ node: 0 }, { node: 1 }]);
  assert.deepEqual(found("guid fb0"), []);
});

test("names match in any case, those that begin with the query first", () => {
  assert.deepEqual(
    search(RUN, "LEAF").map(({ text }) => text),
    ["switch leaf0", "switch leaf1"],
  );
  const run = makeRun({}, { host_names: ["x1", "ax", "xx", "b"] });
  assert.deepEqual(
    search(run, "host x").map(({ text }) => text),
    ["host x1", "host xx", "host ax"],
  );
});

test("a rank is found by its whole number", () => {
  const run = makeRun({}, { rank_names: ["0", "10", "20", "30"] });
  assert.deepEqual(
    search(run, "rank 0").map(({ part }) => part),
    [{ ranks: [0] }],
  );
});

test("nodes of several rails have the number of theirs", () => {
  const rail = { name: "rail", has_levels: true };
  const run = makeRun({ nodeRail: Uint8Array.of(0, 0, 0, 0, 0, 1, 1) }, { rails: [rail, rail] });
  assert.deepEqual(
    search(run, "leaf").map(({ text }) => text),
    ["switch rail 0: leaf0", "switch rail 1: leaf1"],
  );
});

test("several jobs have a rank of each number", () => {
  const run = makeRun({}, { rank_names: ["0:0", "0:1", "1:0", "1:1"] });
  assert.deepEqual(
    search(run, "rank 1").map(({ part }) => part),
    [{ ranks: [1] }, { ranks: [3] }],
  );
});

test("there are at most twelve results", () => {
  const run = makeRun({ nodeHost: new Int32Array(7) }, { host_names: Array.from({ length: 40 }, (_, at) => `n${at}`) });
  assert.equal(search(run, "n").length, 12);
});

test("regions, operations and lines are found, in any case, with or without MPI_", () => {
  const flows = makeFlows([{ from: 0, to: 1, bytes: 1, region: 1 }]);
  const run = makeRun(
    { flows },
    { regions: ["main", "halo"], operations: ["*", "MPI_Bcast"], sites: ["*", "halo.c:7"] },
  );
  assert.deepEqual(search(run, "HALO"), [
    { text: "region halo", part: { region: 1 } },
    { text: "line halo.c:7", part: { site: 1 } },
  ]);
  assert.deepEqual(search(run, "line halo"), [{ text: "line halo.c:7", part: { site: 1 } }]);
  for (const query of ["MPI_Bcast", "bcast", "operation bc"])
    assert.deepEqual(search(run, query), [{ text: "operation MPI_Bcast", part: { operation: 1 } }]);
  assert.deepEqual(search(run, "*"), []);
});

test("a name that begins with the word of another kind is found too", () => {
  const run = makeRun({}, { regions: ["main", "host exchange"] });
  assert.deepEqual(search(run, "host exchange"), [{ text: "region host exchange", part: { region: 1 } }]);
});

test("without flows there is nothing to filter by region", () => {
  assert.deepEqual(search(makeRun({ flows: null }, { regions: ["main", "halo"] }), "halo"), []);
});

test("many results of one kind do not hide the others", () => {
  const host_names = Array.from({ length: 40 }, (_, at) => `halo${at}`);
  const found = search(makeRun({ nodeHost: new Int32Array(7) }, { host_names }), "halo");
  assert.equal(found.length, 12);
  assert.deepEqual(found[0].part, { region: 1 });
});

test("a range of ranks is one result", () => {
  assert.deepEqual(search(RUN, "ranks 1-2"), [{ text: "ranks 1 to 2", part: { ranks: [1, 2] } }]);
  assert.deepEqual(search(RUN, "rank 7-9"), []);
});
