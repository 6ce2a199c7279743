// SPDX-License-Identifier: Apache-2.0
// A list of ranks or hosts with the bytes that they send and receive. Several can be selected.

import type { Amounts } from "../data/amounts";
import type { FlowKey } from "../data/flow_keys";
import { rankLargest } from "../data/ranking";
import { formatBytes, formatCount } from "../format";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import type { Selection } from "../state";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../widgets/dom";

const MOST = 300;

/** Ranks or hosts: how they are selected, summed and named. */
export interface EndpointKind {
  /** Their name in the address. */
  part: "ranks" | "hosts";
  title: string;
  /** The noun, in the singular. */
  noun: string;
  sent(): FlowKey;
  received(): FlowKey;
  /** Return the full name, which the filter is matched with. */
  name(which: number): string;
}

type SortOrder = "sent" | "received" | "number";

/** A table that its headings sort and a box filters. */
export class EndpointListPanel implements Panel {
  readonly name: string;
  readonly title: string;
  readonly element = element("section");
  private readonly filter = element("input");
  private readonly place: HTMLElement;
  private order: SortOrder = "sent";
  private encoding: Encoding | null = null;

  constructor(
    private readonly page: Page,
    private readonly kind: EndpointKind,
  ) {
    [this.name, this.title] = [kind.part, kind.title];
    this.filter.type = "search";
    this.filter.placeholder = `filter ${kind.part}`;
    this.filter.setAttribute("aria-label", `Filter ${kind.part}`);
    this.filter.addEventListener("input", () => this.draw());
    this.place = scroller(kind.part);
    this.place.id = kind.part;
    this.element.append(this.filter, this.place);
  }

  show(encoding: Encoding): void {
    this.encoding = encoding;
    this.draw();
  }

  private draw(): void {
    const { encoding, kind } = this;
    if (!encoding) return;
    const selection: Selection = { ...encoding.state, [kind.part]: undefined };
    const { table } = this.page;
    const sums = { sent: table.sumBy(selection, kind.sent()), received: table.sumBy(selection, kind.received()) };
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = (which: number): boolean => !wanted || kind.name(which).toLowerCase().includes(wanted);
    const { listed, found } = this.list(sums, fits);
    const chosen = encoding.state[kind.part] ?? [];
    const rows = listed.map((which) => this.makeRow(which, sums, chosen));
    const note = element("p", rows.length < found ? `the first ${rows.length} of ${found}` : `${found} total`);
    const headers = [`${kind.noun}`, this.makeHead("sends", "sent"), this.makeHead("receives", "received")];
    const none = element("p", `no ${kind.noun} with traffic over links`);
    replaceChildren(this.place, ...(rows.length ? [note, tableOf(headers, rows)] : [none]));
  }

  private list(
    sums: Record<"sent" | "received", Amounts>,
    fits: (which: number) => boolean,
  ): { listed: number[]; found: number } {
    const { order } = this;
    if (order !== "number") {
      const { first, used } = rankLargest(sums[order], MOST, (one, other) => one - other, fits);
      // Endpoints that only receive follow those that send, or vice versa.
      const other = sums[order === "sent" ? "received" : "sent"];
      const rest = rankLargest(
        other,
        MOST,
        (a, b) => a - b,
        (which) => fits(which) && !sums[order].approximate(which),
      );
      return { listed: [...first, ...rest.first].slice(0, MOST), found: used + rest.used };
    }
    const all: number[] = [];
    for (let which = 0; which < sums.sent.length; which++) if (fits(which)) all.push(which);
    return { listed: all.slice(0, MOST), found: all.length };
  }

  private makeHead(text: string, order: "sent" | "received"): HTMLElement {
    const head = button(this.order === order ? `${text} ▾` : text, () => {
      this.order = this.order === order ? "number" : order;
      this.draw();
    });
    head.title = "Sort by this column, or by number";
    return head;
  }

  private makeRow(which: number, sums: Record<"sent" | "received", Amounts>, chosen: number[]): HTMLTableRowElement {
    const { part, name } = this.kind;
    const among = chosen.includes(which);
    const choose = (several: boolean): void => {
      const others = chosen.filter((each) => each !== which);
      const kept = several ? (among ? others : [...others, which].sort((one, other) => one - other)) : [which];
      const next = !several && among && chosen.length === 1 ? [] : kept;
      this.page.choose({ [part]: next.length ? next : undefined });
    };
    const box = element("input");
    box.type = "checkbox";
    box.checked = among;
    box.setAttribute("aria-label", `${name(which)}: add to selection`);
    box.addEventListener("change", () => choose(true));
    const head = element(
      "span",
      "",
      box,
      button(name(which), (event) => choose(event.ctrlKey || event.metaKey), among),
    );
    const cell = (amount: bigint): HTMLElement => {
      const made = element("span", formatCount(amount));
      made.title = formatBytes(Number(amount));
      return made;
    };
    return rowOf(head, cell(sums.sent.exact(which)), cell(sums.received.exact(which)));
  }
}
