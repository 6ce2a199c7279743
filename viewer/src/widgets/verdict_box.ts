// SPDX-License-Identifier: Apache-2.0
// The verdict on the run, and what to do.

import type { FirstCause } from "../data/model";
import { printable } from "../format";
import type { Page } from "../page";
import { button, byId, element, replaceChildren, unbroken } from "./dom";

export class VerdictBox {
  private shown: object | undefined;

  constructor(private readonly page: Page) {}

  /** Show the verdict on the page's run; show no verdict if the file has none. */
  show(): void {
    const { verdict } = this.page.model.header;
    const box = byId("verdict");
    box.hidden = !verdict;
    if (!verdict || verdict === this.shown) return;
    this.shown = verdict;
    box.classList.toggle("fault", verdict.has_fault);
    const { name } = this.page;
    const title = `${verdict.question}${name ? ` ${name}:` : ""}`;
    const parts: Node[] = [element("h2", title), element("p", "", ...unbroken(printable(verdict.text)))];
    const { end } = verdict;
    if (end !== null) {
      const busiest = button("Show the most loaded link", () => this.page.choose({ end }));
      busiest.id = "busiest";
      parts.push(busiest);
    }
    if (verdict.first_cause) parts.push(describeCause(verdict.first_cause));
    if (verdict.missing.length) {
      const missing = element("p", "", ...unbroken(`Missing: ${verdict.missing.map(printable).join("; ")}`));
      missing.className = "note";
      parts.push(missing);
    }
    replaceChildren(box, ...parts);
  }
}

function describeCause({ cause, at, evidence, change }: FirstCause): HTMLElement {
  const place = at.length ? ` at ${at.map(printable).join(", ")}` : "";
  const lines = [...evidence, ...(change ? [`Change: ${change}`] : [])].map((line) =>
    element("li", "", ...unbroken(printable(line))),
  );
  return element("details", "", element("summary", `Cause: ${printable(cause)}${place}`), element("ul", "", ...lines));
}
