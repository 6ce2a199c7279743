// SPDX-License-Identifier: Apache-2.0
// Link ends by what they carry: the picture in words.

import { sayValue } from "../data/link_values";
import { button, element, replaceChildren, rowOf, tableOf } from "../dom";
import type { Page } from "../page";
import type { Look } from "../pictures/look";
import { formatBytes, formatCount, formatShare, printable } from "../show";
import { ScrollingPanel } from "./scrolling";

export class Links extends ScrollingPanel {
  constructor(page: Page) {
    super(page, "links", "Links");
  }

  show(look: Look): void {
    const { model, names } = this.page;
    const { amounts, ranking, state, value } = look;
    const loaded = model.header.about === undefined;
    const total = BigInt(model.header.bytes_routed);
    const rows = ranking.first.map((end) => {
      const amount = amounts.exact(end);
      const chosen = state.end === end;
      const name = button(names.end(end), () => this.page.choose({ end: chosen ? undefined : end }), chosen);
      const bytes = element("span", formatCount(amount));
      bytes.title = formatBytes(Number(amount));
      const load = [bytes, formatShare(amount, total), names.leastTime(end, Number(amount)).replace("at least ", "")];
      return rowOf(name, ...(loaded ? load : []), ...model.linkValues.map((each) => sayValue(each, end >> 1)));
    });
    const links = ranking.used > model.links ? "directions of links" : "links";
    const what = value ? `${links} by ${printable(value.name)}` : "link ends that carry anything";
    const note = element("p", `${rows.length} of ${ranking.used} ${what}`);
    const heads = loaded ? ["sends on the link", "bytes", "share", "least time"] : ["link"];
    const values = model.linkValues.map((each) => printable(each.name));
    replaceChildren(this.place, note, tableOf([...heads, ...values], rows));
  }
}
