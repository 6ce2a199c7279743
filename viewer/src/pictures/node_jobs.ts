// SPDX-License-Identifier: Apache-2.0
// The job of each node.

import type { Run } from "../run";

/**
 * Return the job of each node. If there are several jobs, or ranks are unknown, a node has the job of its first flow.
 * Other nodes with ranks have job 0.
 */
export function findNodeJobs({ model, table }: Run): Map<number, number> {
  const jobs = new Map<number, number>();
  const { flows } = model;
  if (flows && (!table.hasRankedFlows || model.header.jobs.length > 1)) {
    const note = (address: number, job: number): void => {
      const node = flows.addressNode[address];
      if (node >= 0 && !jobs.has(node)) jobs.set(node, job);
    };
    for (let flow = 0; flow < flows.count; flow++) {
      note(flows.source[flow], flows.job[flow]);
      note(flows.destination[flow], flows.job[flow]);
    }
  }
  for (const node of model.rankNode) if (node >= 0 && !jobs.has(node)) jobs.set(node, 0);
  return jobs;
}
