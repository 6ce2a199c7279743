// SPDX-License-Identifier: Apache-2.0
// Link ends by what they carry: the picture in words.

import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { formatBytes, formatCount, formatShare } from "../show";

export class Links implements Panel {
  readonly name = "links";
  readonly title = "Links";
  readonly element = element("section");
  private readonly place = scroller("Links");

  constructor(private readonly page: Page) {
    this.place.id = "links";
    this.element.append(this.place);
  }

  show({ amounts, ranking, state }: Look): void {
    const { model, names } = this.page;
    const total = BigInt(model.header.bytes_routed);
    const rows = ranking.first.map((end) => {
      const amount = amounts.exact(end);
      const chosen = state.end === end;
      const name = button(names.end(end), () => this.page.choose({ end: chosen ? undefined : end }), chosen);
      const bytes = element("span", formatCount(amount));
      bytes.title = formatBytes(Number(amount));
      return rowOf(
        name,
        bytes,
        formatShare(amount, total),
        names.leastTime(end, Number(amount)).replace("at least ", ""),
      );
    });
    const note = element("p", `${rows.length} of ${ranking.used} link ends that carry anything`);
    replaceChildren(this.place, note, tableOf(["sends on the link", "bytes", "share", "least time"], rows));
  }
}
