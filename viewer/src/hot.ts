// SPDX-License-Identifier: Apache-2.0
// The hottest link ends, on the first screen: their share, least time, and who loads them.

import { button, byId, element, replaceChildren } from "./dom";
import type { Page } from "./page";
import type { Look } from "./pictures/look";
import { formatBytes, formatShare } from "./show";

const HOTTEST = 3;

export class Hot {
  constructor(private readonly page: Page) {}

  show({ amounts, ranking, state }: Look): void {
    const { model, names } = this.page;
    const total = BigInt(model.header.bytes_routed);
    const items = ranking.first.slice(0, HOTTEST).map((end) => {
      const choose = button(names.end(end), () => this.page.choose({ end }));
      choose.dataset.end = String(end);
      const amount = amounts.exact(end);
      const carried = `${formatBytes(Number(amount))}, ${formatShare(amount, total)} of all bytes on links; ${names.leastTime(end, Number(amount))}`;
      return element("li", "", choose, element("p", carried), element("p", names.whoIsOn(state, end)));
    });
    if (!items.length) items.push(element("li", "no link carries anything"));
    replaceChildren(byId("hot"), ...items);
  }
}
