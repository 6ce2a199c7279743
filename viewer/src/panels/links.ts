// SPDX-License-Identifier: Apache-2.0
// The table of the picture's coloured link directions, sorted by load, change or property; only the first are listed.

import { formatLinkValue } from "../data/link_values";
import { formatBytes, formatCount, formatShare, printable } from "../format";
import type { Page } from "../page";
import type { Encoding } from "../pictures/encoding";
import { button, element, replaceChildren, rowOf, tableOf } from "../widgets/dom";
import { ListPanel } from "./list_panel";

export class LinksPanel extends ListPanel {
  constructor(page: Page) {
    super(page, "links", "Links");
  }

  show(encoding: Encoding): void {
    const { model, names } = this.page;
    const { amounts, ranking, state, value } = encoding;
    const loaded = model.header.about === undefined;
    const total = BigInt(model.header.bytes_routed);
    const rows = ranking.first.map((end) => {
      const amount = amounts.exact(end);
      const chosen = state.end === end;
      const name = button(names.end(end), () => this.page.choose({ end: chosen ? undefined : end }), chosen);
      const bytes = element("span", formatCount(amount));
      bytes.title = formatBytes(Number(amount));
      const load = [
        bytes,
        formatShare(amount, total),
        names.lineRateTime(end, Number(amount)).replace(" at line rate", ""),
      ];
      return rowOf(name, ...(loaded ? load : []), ...model.linkValues.map((each) => formatLinkValue(each, end >> 1)));
    });
    const links = ranking.used > model.links ? "link directions" : "links";
    const what = value ? `${links} by ${printable(value.name)}` : "link directions with traffic";
    const note = element("p", `${rows.length} of ${ranking.used} ${what}`);
    const headers = loaded ? ["transmit port", "bytes", "share", "line-rate time"] : ["link"];
    const values = model.linkValues.map((each) => printable(each.name));
    replaceChildren(this.container, note, tableOf([...headers, ...values], rows));
  }
}
