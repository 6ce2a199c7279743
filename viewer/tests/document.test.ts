// SPDX-License-Identifier: Apache-2.0
// Decoding a document packed by hand, and a document packed by Python, whose loads equal links.csv.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { decode, readDocument } from "../src/data/document";
import { LoadTable } from "../src/data/load_table";
import type { Selection } from "../src/state";

/** The path of the folder `data`, which test.mjs inserts. */
declare const TEST_DATA: string;

const FABRIC: [name: string, type: string, values: number[]][] = [
  ["link_gbps", "f8", [100]],
  ["node_x", "f4", [0, 1]],
  ["node_y", "f4", [2, 3]],
  ["node_rail", "u1", [0, 0]],
  ["node_kind", "u1", [0, 0]],
  ["node_guid", "u8", [5, 258]],
  ["node_level", "i4", [0, 0]],
  ["node_host", "i4", [0, -1]],
  ["lid_first", "u2", [1, 515]],
  ["lid_count", "u2", [4, 2]],
  ["lid_node", "i4", [0, 1]],
  ["end_node", "u4", [0, 1]],
  ["end_port", "u1", [1, 1]],
  ["0.load", "u8", [7, 70000]],
];
const SIZES: Record<string, number> = { u1: 1, u2: 2, u4: 4, i4: 4, u8: 8, f4: 4, f8: 8 };

/** Packs arrays as docs/formats/view.md says, byte by byte. */
function pack(arrays: typeof FABRIC, changes: Record<string, unknown> = {}): ArrayBuffer {
  let offset = 0;
  const listed = arrays.map(([name, type, values]) => {
    const entry = { name, type, offset, length: values.length };
    offset += Math.ceil((SIZES[type] * values.length) / 8) * 8;
    return entry;
  });
  const run = { name: "one", bytes_routed: "70007" };
  const header = { version: 2, attributes: [], grid: null, runs: [run], arrays: listed, ...changes };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + text.length) / 8) * 8;
  const view = new DataView(new ArrayBuffer(start + offset));
  view.setUint32(0, text.length, true);
  text.forEach((byte, at) => {
    view.setUint8(4 + at, byte);
  });
  arrays.forEach(([, type, values], each) => {
    values.forEach((value, at) => {
      const place = start + listed[each].offset + at * SIZES[type];
      if (type === "f4") view.setFloat32(place, value, true);
      else if (type === "f8") view.setFloat64(place, value, true);
      else
        for (let byte = 0; byte < SIZES[type]; byte++)
          view.setUint8(place + byte, value < 0 ? 255 : Math.floor(value / 256 ** byte) % 256);
    });
  });
  return view.buffer;
}

test("arrays of all types are decoded", () => {
  const [model] = decode(pack(FABRIC));
  assert.deepEqual([model.nodes, model.links], [2, 1]);
  assert.deepEqual([...model.nodeGuid], [5n, 258n]);
  assert.deepEqual([...model.nodeHost], [0, -1]);
  assert.deepEqual([...model.lidFirst], [1, 515]);
  assert.deepEqual([...model.lidCount], [4, 2]);
  assert.deepEqual([...model.nodeX, ...model.nodeY], [0, 1, 2, 3]);
  assert.deepEqual([...model.endNode], [0, 1]);
  assert.deepEqual([...model.linkGbps], [100]);
  assert.deepEqual([...(model.load ?? [])], [7n, 70000n]);
  assert.equal(model.header.name, "one");
  assert.deepEqual([model.flows, model.known, model.intervals, model.space, model.grid], new Array(5).fill(null));
});

test("each array of a run goes to its place", () => {
  const flows: [array: string, property: string][] = [
    ["address_node", "addressNode"],
    ["address_end", "addressEnd"],
    ["address_column", "addressColumn"],
    ["node_table", "nodeTable"],
    ["table", "table"],
    ["rank_address", "rankAddress"],
    ["flow_source", "source"],
    ["flow_destination", "destination"],
    ["flow_source_rank", "sourceRank"],
    ["flow_destination_rank", "destinationRank"],
    ["flow_region", "region"],
    ["flow_operation", "operation"],
    ["flow_job", "job"],
    ["flow_site", "site"],
    ["flow_bytes_low", "bytesLow"],
    ["flow_bytes_high", "bytesHigh"],
  ];
  const intervals: [array: string, property: string][] = [
    ["time_rank", "rank"],
    ["time_begin", "begin"],
    ["time_end", "end"],
    ["time_first_peer", "firstPeer"],
    ["time_last_peer", "lastPeer"],
    ["time_bytes", "bytes"],
  ];
  const ranks: [array: string, property: string][] = [
    ["rank_node", "rankNode"],
    ["rank_job", "rankJob"],
    ["rank_parts", "rankParts"],
  ];
  const all = [...flows, ...intervals, ...ranks];
  // The n-th array has the single element n.
  const arrays = all.map(([name], at): (typeof FABRIC)[0] => [`1.${name}`, "i4", [at]]);
  const runs = [
    { name: "counted", bytes_routed: "70007" },
    { name: "recorded", bytes_routed: "5" },
  ];
  const [counted, recorded] = decode(pack([...FABRIC, ...arrays], { runs }));
  const read = (of: unknown, names: [string, string][]): number[] =>
    names.map(([, property]) => (of as Record<string, ArrayLike<number>>)[property][0]);
  assert.deepEqual(
    [...read(recorded.flows, flows), ...read(recorded.intervals, intervals), ...read(recorded, ranks)],
    all.map((_, at) => at),
  );
  assert.equal(recorded.flows?.count, 1);
  assert.deepEqual([recorded.load, recorded.header.name, recorded.header.bytes_routed], [null, "recorded", "5"]);
  assert.deepEqual([counted.flows, counted.intervals, counted.header.name], [null, null, "counted"]);
  assert.deepEqual([...counted.rankNode], []);
  assert.equal(counted.rankParts, null);
  assert.equal(recorded.nodeX, counted.nodeX);
});

test("attributes, link properties and positions are optional", () => {
  const arrays: typeof FABRIC = [
    ...FABRIC,
    ["attribute_0", "f8", [1, 0]],
    ["link_value_0", "f8", [0.5, Number.NaN]],
    ["rank_place", "i4", [0, 1, 0]],
    ["node_space", "f4", [0, 1, 2, 3, 4, 5]],
    ["0.known", "u1", [1, 0]],
  ];
  const [model] = decode(
    pack(arrays, {
      attributes: [{ name: "role", of: "node", classes: ["a", "b"] }],
      link_values: [{ name: "delay", unit: "s" }],
      grid: "x by y",
    }),
  );
  assert.deepEqual([...model.attributes[0].value], [1, 0]);
  assert.equal(model.linkValues[0].name, "delay");
  assert.deepEqual([...model.simplex], [1, 0]);
  assert.deepEqual(model.grid?.extents, [1, 2, 1]);
  assert.deepEqual([...(model.space ?? [])], [0, 1, 2, 3, 4, 5]);
  assert.deepEqual([...(model.known ?? [])], [1, 0]);
});

test("another version and missing arrays are errors that name them", () => {
  assert.throws(() => decode(pack(FABRIC, { version: 3 })), /expected a document of version 2, found 3/);
  assert.throws(() => decode(pack(FABRIC.slice(1))), /expected an array link_gbps/);
  const wrong = FABRIC.map((each): (typeof FABRIC)[0] =>
    each[0] === "node_guid" ? ["node_guid", "u4", [1, 2]] : each,
  );
  assert.throws(() => decode(pack(wrong)), /expected an array node_guid of 64 bits/);
});

function readLoads(name: string): bigint[] {
  const [head, ...rows] = readFileSync(join(TEST_DATA, name), "utf8").trim().split("\n");
  const columns = head.trim().split(",");
  const [a, b] = [columns.indexOf("a_bytes"), columns.indexOf("b_bytes")];
  assert.ok(a > 0 && b > 0 && rows.length > 0);
  // Names of a synthetic fabric have no commas.
  return rows.flatMap((row) => [BigInt(row.split(",")[a]), BigInt(row.split(",")[b])]);
}

test("the loads of a document that Python packed are those of links.csv", async () => {
  const [model] = await readDocument(readFileSync(join(TEST_DATA, "document.b64"), "utf8"));
  const table = new LoadTable(model);
  const loads = (selection: Selection): bigint[] => {
    const amounts = table.loadOfEnds(selection);
    return Array.from({ length: amounts.length }, (_, end) => amounts.exact(end));
  };
  const expected = readLoads("links.csv");
  assert.ok(expected.some((load) => load > 2n ** 62n));
  assert.deepEqual(loads({}), expected);
  assert.deepEqual(loads({ ranks: [5] }), readLoads("links-rank5.csv"));
});
