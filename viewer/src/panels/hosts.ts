// SPDX-License-Identifier: Apache-2.0
// Hosts, and what they send and receive over links.

import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { SenderList } from "./senders";

const LISTED_RANKS = 6;

export class Hosts implements Panel {
  readonly name = "hosts";
  readonly title = "Hosts";
  readonly element: HTMLElement;
  private readonly list: SenderList;

  constructor(page: Page) {
    const { names, table } = page;
    const ranks = ranksByHost(page);
    const name = (host: number): string => {
      const here = ranks.get(host) ?? [];
      const listed = here.slice(0, LISTED_RANKS).map((rank) => names.rank(rank));
      const more = here.length > LISTED_RANKS ? ", …" : "";
      return here.length ? `${names.host(host)} (rank ${listed.join(", ")}${more})` : names.host(host);
    };
    this.list = new SenderList(page, {
      part: "hosts",
      what: "host",
      sent: table.by.sourceHost,
      received: table.by.destinationHost,
      name,
      words: name,
    });
    this.element = this.list.element;
  }

  show(look: Look): void {
    this.list.show(look);
  }
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
