// SPDX-License-Identifier: Apache-2.0
// The panels of ranks and hosts.

import type { Page } from "../page";
import { EndpointListPanel } from "./endpoint_list";

const LISTED_RANKS = 6;

export function makeRanksPanel(page: Page): EndpointListPanel {
  const { names, table } = page;
  return new EndpointListPanel(page, {
    part: "ranks",
    title: "Ranks",
    noun: "rank",
    sent: () => table.by.sourceRank(),
    received: () => table.by.destinationRank(),
    name: (rank) => `${names.rank(rank)} on ${names.node(names.nodeOfRank(rank))}`,
  });
}

export function makeHostsPanel(page: Page): EndpointListPanel {
  const { names, table } = page;
  const ranks = ranksByHost(page);
  return new EndpointListPanel(page, {
    part: "hosts",
    title: "Hosts",
    noun: "host",
    sent: () => table.by.sourceHost(),
    received: () => table.by.destinationHost(),
    name: (host) => {
      const here = ranks.get(host) ?? [];
      const listed = here.slice(0, LISTED_RANKS).map((rank) => names.rank(rank));
      const more = here.length > LISTED_RANKS ? ", …" : "";
      return here.length ? `${names.host(host)} (rank ${listed.join(", ")}${more})` : names.host(host);
    },
  });
}

function ranksByHost({ model, names }: Page): Map<number, number[]> {
  const ranks = new Map<number, number[]>();
  for (let rank = 0; rank < model.header.rank_names.length; rank++) {
    const node = names.nodeOfRank(rank);
    if (node < 0) continue;
    const host = model.nodeHost[node];
    const here = ranks.get(host);
    if (here) here.push(rank);
    else ranks.set(host, [rank]);
  }
  return ranks;
}
