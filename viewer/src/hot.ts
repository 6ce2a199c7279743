// SPDX-License-Identifier: Apache-2.0
// The hottest link ends, on the first screen: their share, least time, and who loads them.

import { sayOther, sayOwn, sayWhoChanged } from "./compared";
import { sayValue } from "./data/link_values";
import { button, byId, element, replaceChildren } from "./dom";
import type { Page } from "./page";
import type { Look } from "./pictures/look";
import { formatBytes, formatShare, printable } from "./show";

const HOTTEST = 3;

export class Hot {
  constructor(private readonly page: Page) {}

  show(look: Look): void {
    const { ranking, isChange, run } = look;
    const { compared, names } = this.page;
    const against = compared && isChange ? `Largest changes: from ${run.name} to ${compared.run.name}` : "";
    byId("hot-title").textContent = this.isLoaded
      ? against || (run.name ? `Hottest links: ${run.name}` : "Hottest links")
      : `Links by ${printable(look.value?.name ?? "value")}`;
    const items = ranking.first.slice(0, HOTTEST).map((end) => {
      const choose = button(names.end(end), () => this.page.choose({ end }));
      choose.dataset.end = String(end);
      return element("li", "", choose, ...this.describe(look, end).map((line) => element("p", line)));
    });
    const none = isChange ? "no link carries more or less" : "no link carries anything";
    if (!items.length) items.push(element("li", none));
    replaceChildren(byId("hot"), ...items);
  }

  private get isLoaded(): boolean {
    return this.page.model.header.about === undefined;
  }

  private describe({ amounts, isChange, state }: Look, end: number): string[] {
    const { model, names, compared } = this.page;
    if (!this.isLoaded)
      return [model.linkValues.map((each) => `${printable(each.name)} ${sayValue(each, end >> 1)}`).join("; ")];
    if (compared && isChange) {
      const who = sayWhoChanged(this.page, compared, state, end);
      return [sayOwn(this.page, compared, end), sayOther(this.page, compared, end), ...(who ? [who] : [])];
    }
    const amount = amounts.exact(end);
    const share = formatShare(amount, BigInt(model.header.bytes_routed));
    const carried = `${formatBytes(Number(amount))}, ${share} of all bytes on links; ${names.leastTime(end, Number(amount))}`;
    return [carried, names.whoIsOn(state, end), ...(compared ? [sayOther(this.page, compared, end)] : [])];
  }
}
