// SPDX-License-Identifier: Apache-2.0
// Tests whether a selection includes a flow.

import type { Selection } from "../state";
import type { FlowKeys } from "./flow_keys";
import type { Flows, Model } from "./model";
import type { FlowPaths } from "./routes";

type FlowTest = (flow: number) => boolean;

/** Return a test whether a selection includes a flow, by all members except link direction and time. */
export function compileSelection(
  flows: Flows,
  keys: FlowKeys,
  flowsThrough: (node: number) => Uint8Array,
  selection: Selection,
): FlowTest {
  const tests: FlowTest[] = [];
  const equals = (column: ArrayLike<number>, value: number | undefined): void => {
    if (value !== undefined) tests.push((flow) => column[flow] === value);
  };
  const eitherIn = (one: ArrayLike<number>, other: ArrayLike<number>, values: number[] | undefined): void => {
    if (!values) return;
    const set = new Set(values);
    tests.push((flow) => set.has(one[flow]) || set.has(other[flow]));
  };
  equals(flows.region, selection.region);
  equals(flows.operation, selection.operation);
  equals(flows.job, selection.job);
  equals(flows.site, selection.site);
  equals(flows.sourceRank, selection.source);
  equals(flows.destinationRank, selection.destination);
  eitherIn(flows.sourceRank, flows.destinationRank, selection.ranks);
  if ([selection.from, selection.to, selection.hosts].some((each) => each !== undefined)) {
    const { source, destination } = keys.hosts;
    equals(source, selection.from);
    equals(destination, selection.to);
    eitherIn(source, destination, selection.hosts);
  }
  if (selection.node !== undefined) {
    const through = flowsThrough(selection.node);
    tests.push((flow) => through[flow] === 1);
  }
  if (!tests.length) return () => true;
  return tests.length === 1 ? tests[0] : (flow) => tests.every((test) => test(flow));
}

/** Return 1 for each flow that starts at, ends at or passes through a node. */
export function markFlowsThrough({ endNode }: Model, { offset, end }: FlowPaths, node: number): Uint8Array {
  const through = new Uint8Array(offset.length - 1);
  for (let flow = 0; flow < through.length; flow++)
    for (let hop = offset[flow]; hop < offset[flow + 1]; hop++)
      if (endNode[end[hop]] === node || endNode[end[hop] ^ 1] === node) through[flow] = 1;
  return through;
}
