// SPDX-License-Identifier: Apache-2.0
// The nodes with traffic in any run, whatever the selection.

import type { Run } from "../run";

/** Return 1 for each node with ranks or traffic, and for each node with a link of unknown load. */
export function findUsedNodes(runs: readonly Run[]): Uint8Array {
  const [{ model }] = runs;
  const used = new Uint8Array(model.nodes);
  const note = (node: number): void => {
    if (node >= 0) used[node] = 1;
  };
  for (const { model, table } of runs) {
    model.rankNode.forEach(note);
    model.flows?.addressNode.forEach(note);
    const loads = table.loadOfEnds({});
    for (let end = 0; end < loads.length; end++) {
      if (!loads.approximate(end) && table.isKnown(end)) continue;
      note(model.endNode[end]);
      note(model.endNode[end ^ 1]);
    }
  }
  return used;
}
