// SPDX-License-Identifier: Apache-2.0
// Which nodes the jobs are on.

import type { Run } from "./page";

/** The job of each node that has ranks, or sends and receives where ranks are not known; of several the first. */
export function findJobs({ model, table }: Run): Map<number, number> {
  const jobs = new Map<number, number>();
  const { flows } = model;
  if (flows && (!table.hasRankedFlows || model.header.jobs.length > 1)) {
    const meet = (address: number, job: number): void => {
      const node = flows.addressNode[address];
      if (node >= 0 && !jobs.has(node)) jobs.set(node, job);
    };
    for (let flow = 0; flow < flows.count; flow++) {
      meet(flows.source[flow], flows.job[flow]);
      meet(flows.destination[flow], flows.job[flow]);
    }
  }
  for (const node of model.rankNode) if (node >= 0 && !jobs.has(node)) jobs.set(node, 0);
  return jobs;
}
