// SPDX-License-Identifier: Apache-2.0
// Routes of packets: hop by hop along the forwarding tables.

import { type Flows, type Model, NONE, SWITCH } from "./model";

const PORTS = 256;
const SWITCH_ITSELF = 0;

/** Flow i passes the link directions `end[offset[i] .. offset[i + 1]]`; none if the flow does not arrive. */
export interface FlowPaths {
  offset: Uint32Array;
  end: Uint32Array;
}

export class Router {
  readonly paths: FlowPaths;
  private readonly endAt: Int32Array;
  private readonly path: Uint32Array;

  constructor(
    private readonly model: Model,
    private readonly flows: Flows,
  ) {
    this.endAt = new Int32Array(model.nodes * PORTS).fill(NONE);
    const { endNode, endPort } = model;
    for (let end = 0; end < 2 * model.links; end++) this.endAt[endNode[end] * PORTS + endPort[end]] = end;
    this.path = new Uint32Array(model.nodes + 2);
    this.paths = this.followAll();
  }

  /** Return the link directions from one address to another; empty if there is no route. */
  route(source: number, destination: number): number[] {
    if (source < 0 || destination < 0) return [];
    return Array.from(this.path.subarray(0, this.walk(source, destination)));
  }

  private followAll(): FlowPaths {
    const { flows, path } = this;
    const { source, destination } = flows;
    const offset = new Uint32Array(flows.count + 1);
    let ends = new Uint32Array(Math.max(1024, 8 * flows.count));
    let used = 0;
    let hops = 0;
    for (let flow = 0; flow < flows.count; flow++) {
      // Flows of the same pair are adjacent: one for each region and operation.
      if (!flow || source[flow] !== source[flow - 1] || destination[flow] !== destination[flow - 1])
        hops = this.walk(source[flow], destination[flow]);
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

  /** Write the route between two addresses to `path`, and return the number of its links; 0 if there is no route. */
  private walk(source: number, destination: number): number {
    const { flows, path, endAt } = this;
    const { endNode, nodeKind, nodes } = this.model;
    const { addressNode, addressEnd, nodeTable, table } = flows;
    const goal = addressNode[destination];
    const lastEnd = addressEnd[destination];
    let node = addressNode[source];
    if (node === NONE || goal === NONE) return 0;
    let hops = 0;
    if (nodeKind[node] !== SWITCH) {
      const first = addressEnd[source];
      if (first === NONE || first === lastEnd) return 0;
      path[hops++] = first;
      node = endNode[first ^ 1];
      if (nodeKind[node] !== SWITCH) return (first ^ 1) === lastEnd ? hops : 0;
    }
    const column = flows.addressColumn[destination];
    if (column === NONE) return 0;
    while (node !== goal) {
      const row = nodeTable[node];
      const port = row === NONE ? PORTS : table[row + column];
      const end = port === SWITCH_ITSELF || port >= PORTS ? NONE : endAt[node * PORTS + port];
      if (end === NONE || hops > nodes) return 0;
      path[hops++] = end;
      node = endNode[end ^ 1];
      if (nodeKind[node] !== SWITCH) return (end ^ 1) === lastEnd ? hops : 0;
    }
    return hops;
  }
}
