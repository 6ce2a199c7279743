// SPDX-License-Identifier: Apache-2.0
// The most loaded links: their share, time at line rate, and largest senders.

import { formatLinkValue } from "../data/link_values";
import { formatBytes, formatCount, formatShare, printable } from "../format";
import type { Page } from "../page";
import type { Encoding } from "../pictures/encoding";
import { describeLargestChanges, describeOtherLoad, describeOwnLoad } from "../text/comparison_text";
import { button, byId, element, replaceChildren } from "./dom";

export class TopLinks {
  constructor(private readonly page: Page) {}

  /** Show the links of the first picture, and of the second picture, if shown. */
  show(encoding: Encoding, second: Encoding | undefined): void {
    this.list(encoding, "top-links");
    byId("top-links-other").hidden = !second;
    if (second) this.list(second, "top-links-second");
  }

  private list(encoding: Encoding, id: string): void {
    const { groups, isChange, run } = encoding;
    const { compared, names } = this.page;
    const changes = compared && isChange ? `Largest changes from ${run.name} to ${compared.run.name}` : "";
    byId(`${id}-title`).textContent = this.isLoaded
      ? changes || (run.name ? `Most loaded links: ${run.name}` : "Most loaded links")
      : `Links by ${printable(encoding.value?.name ?? "value")}`;
    const items = groups.map(({ end, count }) => {
      const choose = button(names.end(end), () => this.page.choose({ end }));
      choose.dataset.end = String(end);
      return element("li", "", choose, ...this.describe(encoding, end, count).map((line) => element("p", line)));
    });
    const none = isChange ? "no load changed" : "no traffic on any link";
    if (!items.length) items.push(element("li", none));
    replaceChildren(byId(id), ...items);
  }

  private get isLoaded(): boolean {
    return this.page.model.header.about === undefined;
  }

  private describe({ amounts, isChange, state, run }: Encoding, end: number, count: number): string[] {
    const { compared } = this.page;
    const { model, names } = run;
    if (!this.isLoaded)
      return [model.linkValues.map((each) => `${printable(each.name)} ${formatLinkValue(each, end >> 1)}`).join("; ")];
    if (compared && isChange) {
      const who = describeLargestChanges(this.page, compared, state, end);
      return [
        describeOwnLoad(this.page, compared, end),
        describeOtherLoad(this.page, compared, end),
        ...(who ? [who] : []),
      ];
    }
    const amount = amounts.exact(end);
    const share = formatShare(amount, BigInt(model.header.bytes_routed));
    const alike = count > 1 ? `; ${formatCount(BigInt(count))} links alike` : "";
    const time = names.lineRateTime(end, Number(amount));
    const load = `${formatBytes(Number(amount))}, ${share} of bytes on links; ${time}${alike}`;
    return [
      load,
      names.describeSenders(state, end),
      ...(compared
        ? [
            run === compared.run
              ? describeOwnLoad(this.page, compared, end)
              : describeOtherLoad(this.page, compared, end),
          ]
        : []),
    ];
  }
}
