// SPDX-License-Identifier: Apache-2.0
// The panels of ranks and hosts.

import type { NumberArray } from "../data/arrays";
import { formatSeconds } from "../format";
import type { Page } from "../page";
import { element } from "../widgets/dom";
import { type EndpointColumn, EndpointListPanel } from "./endpoint_list";

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
    columns: partColumns(page.model.rankParts),
  });
}

/** Return columns for waiting, transfer and unsplit time of each rank; no columns if `parts` is null. */
function partColumns(parts: NumberArray | null): EndpointColumn[] {
  if (!parts) return [];
  return ["waiting", "transfer", "not split"].map((title, part) => ({
    title,
    value: (rank) => parts[4 * rank + part] || 0,
    cell: (rank) => {
      const [seconds, error] = [parts[4 * rank + part], part ? 0 : parts[4 * rank + 3]];
      const small = error > 0 ? [element("small", `± ${formatSeconds(error)}`)] : [];
      return element("span", Number.isNaN(seconds) ? "" : formatSeconds(seconds), ...small);
    },
  }));
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
