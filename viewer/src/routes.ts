// SPDX-License-Identifier: Apache-2.0
// Where the packets of each flow go: hop by hop along the forwarding tables.

import { type Flows, type Model, NONE } from "./document";

const PORTS = 256;
const SWITCH = 1;
const SWITCH_ITSELF = 0;

/** The link ends that flow i passes are `end[offset[i] .. offset[i + 1]]`; none where it does not arrive. */
export interface Paths {
  offset: Uint32Array;
  end: Uint32Array;
}

export function findPaths(model: Model, flows: Flows): Paths {
  const endAt = new Int32Array(model.nodes * PORTS).fill(NONE);
  for (let end = 0; end < 2 * model.links; end++) endAt[model.endNode[end] * PORTS + model.endPort[end]] = end;
  const offset = new Uint32Array(flows.count + 1);
  let ends = new Uint32Array(Math.max(1024, 8 * flows.count));
  const path = new Uint32Array(model.nodes + 2);
  let used = 0;
  let hops = 0;
  for (let flow = 0; flow < flows.count; flow++) {
    const [source, destination] = [flows.source[flow], flows.destination[flow]];
    // Flows of one pair follow one another, one a region and operation.
    if (!flow || source !== flows.source[flow - 1] || destination !== flows.destination[flow - 1])
      hops = walk(model, flows, endAt, source, destination, path);
    if (used + hops > ends.length) {
      const longer = new Uint32Array(2 * ends.length + hops);
      longer.set(ends);
      ends = longer;
    }
    for (let hop = 0; hop < hops; hop++) ends[used++] = path[hop];
    offset[flow + 1] = used;
  }
  return { offset, end: ends.subarray(0, used) };
}

/** Follows one pair of addresses; gives its number of hops, 0 where it loads no link. */
function walk(
  model: Model,
  flows: Flows,
  endAt: Int32Array,
  source: number,
  destination: number,
  path: Uint32Array,
): number {
  const goal = flows.addressNode[destination];
  const lastEnd = flows.addressEnd[destination];
  let node = flows.addressNode[source];
  if (node === NONE || goal === NONE) return 0;
  let hops = 0;
  if (model.nodeKind[node] !== SWITCH) {
    const first = flows.addressEnd[source];
    if (first === NONE || first === lastEnd) return 0;
    path[hops++] = first;
    node = model.endNode[first ^ 1];
    if (model.nodeKind[node] !== SWITCH) return (first ^ 1) === lastEnd ? hops : 0;
  }
  const column = flows.addressColumn[destination];
  while (node !== goal) {
    const row = flows.nodeTable[node];
    const port = row === NONE ? PORTS : flows.table[row + column];
    const end = port === SWITCH_ITSELF || port >= PORTS ? NONE : endAt[node * PORTS + port];
    if (end === NONE || hops > model.nodes) return 0;
    path[hops++] = end;
    node = model.endNode[end ^ 1];
    if (model.nodeKind[node] !== SWITCH) return (end ^ 1) === lastEnd ? hops : 0;
  }
  return hops;
}
