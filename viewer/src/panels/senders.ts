// SPDX-License-Identifier: Apache-2.0
// A list of those who send and receive, with totals: ranks, hosts. Several can be chosen.

import { type Amounts, rank } from "../data/amounts";
import type { Key } from "../data/loads";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { formatBytes, formatCount } from "../show";
import type { Selection } from "../state";

const MOST = 300;

/** Who: how they are chosen, summed up and called. */
export interface Senders {
  /** As the address names them. */
  part: "ranks" | "hosts";
  title: string;
  /** In the singular. */
  what: string;
  sent(): Key;
  received(): Key;
  /** In full: it is what a filter is held against too. */
  name(which: number): string;
}

type Order = "sent" | "received" | "number";

/** A table of them; its heads order it, a box filters it. */
export class SendersPanel implements Panel {
  readonly name: string;
  readonly title: string;
  readonly element = element("section");
  private readonly filter = element("input");
  private readonly place: HTMLElement;
  private order: Order = "sent";
  private look: Look | null = null;

  constructor(
    private readonly page: Page,
    private readonly senders: Senders,
  ) {
    [this.name, this.title] = [senders.part, senders.title];
    this.filter.type = "search";
    this.filter.placeholder = `filter ${senders.part}`;
    this.filter.setAttribute("aria-label", `Filter ${senders.part}`);
    this.filter.addEventListener("input", () => this.draw());
    this.place = scroller(senders.part);
    this.place.id = senders.part;
    this.element.append(this.filter, this.place);
  }

  show(look: Look): void {
    this.look = look;
    this.draw();
  }

  private draw(): void {
    const { look, senders } = this;
    if (!look) return;
    const selection: Selection = { ...look.state, [senders.part]: undefined };
    const { table } = this.page;
    const sums = { sent: table.sumBy(selection, senders.sent()), received: table.sumBy(selection, senders.received()) };
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = (which: number): boolean => !wanted || senders.name(which).toLowerCase().includes(wanted);
    const { listed, found } = this.list(sums, fits);
    const chosen = look.state[senders.part] ?? [];
    const rows = listed.map((which) => this.makeRow(which, sums, chosen));
    const note = element("p", rows.length < found ? `the first ${rows.length} of ${found}` : `${found} in all`);
    const heads = [`${senders.what}`, this.makeHead("sends", "sent"), this.makeHead("receives", "received")];
    const none = element("p", `no ${senders.what} sends over links`);
    replaceChildren(this.place, ...(rows.length ? [note, tableOf(heads, rows)] : [none]));
  }

  private list(
    sums: Record<"sent" | "received", Amounts>,
    fits: (which: number) => boolean,
  ): { listed: number[]; found: number } {
    const { order } = this;
    if (order !== "number") {
      const { first, used } = rank(sums[order], MOST, (one, other) => one - other, fits);
      // Those that only receive follow those that send, or the other way round.
      const other = sums[order === "sent" ? "received" : "sent"];
      const rest = rank(
        other,
        MOST,
        (a, b) => a - b,
        (which) => fits(which) && !sums[order].rough(which),
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
    head.title = "order by this, or by number";
    return head;
  }

  private makeRow(which: number, sums: Record<"sent" | "received", Amounts>, chosen: number[]): HTMLTableRowElement {
    const { part, name } = this.senders;
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
    box.setAttribute("aria-label", `${name(which)} too`);
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
