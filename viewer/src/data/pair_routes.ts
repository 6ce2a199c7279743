// SPDX-License-Identifier: Apache-2.0
// The route of a selected pair of ranks or hosts on each rail.

import type { Selection } from "../state";
import type { FlowKeys } from "./flow_keys";
import { type Flows, type Model, NONE } from "./model";
import type { Router } from "./routes";

/**
 * Return for each rail the link directions that packets of the selected pair would take; empty if there is no route.
 * The result is null if no pair is selected, or if there are no flows.
 */
export function findPairRoutes(
  model: Model,
  keys: FlowKeys,
  router: Router,
  { source, destination, from, to }: Selection,
): number[][] | null {
  const { flows, header } = model;
  if (!flows) return null;
  if (source !== undefined && destination !== undefined) {
    const address = (rank: number, rail: number): number => flows.rankAddress[rank * header.rails.length + rail];
    return header.rails.map((_, rail) => router.route(address(source, rail), address(destination, rail)));
  }
  if (from === undefined || to === undefined) return null;
  return findHostAddresses(model, flows, keys, from, to).map((addresses) => router.route(...addresses));
}

/** For each rail, return the addresses of two hosts: if a flow joins the hosts, the flow's addresses. */
function findHostAddresses(
  { nodeHost, nodeRail, header }: Model,
  flows: Flows,
  keys: FlowKeys,
  from: number,
  to: number,
): [number, number][] {
  const { addressNode, addressColumn } = flows;
  const found = header.rails.map((): [number, number] => [NONE, NONE]);
  addressNode.forEach((node, address) => {
    if (node < 0) return;
    const addresses = found[nodeRail[node]];
    if (nodeHost[node] === from) addresses[0] = address;
    // Forwarding tables have no routes to an address without a column in the tables.
    if (nodeHost[node] === to && addressColumn[address] !== NONE) addresses[1] = address;
  });
  const { source, destination } = keys.hosts;
  for (let flow = flows.count - 1; flow >= 0; flow--)
    if (source[flow] === from && destination[flow] === to)
      found[nodeRail[addressNode[flows.source[flow]]]] = [flows.source[flow], flows.destination[flow]];
  return found;
}
