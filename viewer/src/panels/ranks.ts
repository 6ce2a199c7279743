// SPDX-License-Identifier: Apache-2.0
// Ranks, and what they send and receive over links.

import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { SenderList } from "./senders";

export class Ranks implements Panel {
  readonly name = "ranks";
  readonly title = "Ranks";
  readonly element: HTMLElement;
  private readonly list: SenderList;

  constructor(page: Page) {
    const { names, table } = page;
    const name = (rank: number): string => `${names.rank(rank)} on ${names.node(names.nodeOfRank(rank))}`;
    this.list = new SenderList(page, {
      part: "ranks",
      what: "rank",
      sent: table.by.sourceRank,
      received: table.by.destinationRank,
      name,
      words: name,
    });
    this.element = this.list.element;
  }

  show(look: Look): void {
    this.list.show(look);
  }
}
