// SPDX-License-Identifier: Apache-2.0
// A list of ranks or hosts with the bytes that they send and receive. Users can select several.

import type { Amounts } from "../data/amounts";
import type { FlowKey } from "../data/flow_keys";
import { rankLargest } from "../data/ranking";
import { formatBytes, formatCount } from "../format";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import type { Selection } from "../state";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../widgets/dom";

const MOST = 300;

/** A column other than bytes, by which the list can be sorted. */
export interface EndpointColumn {
  title: string;
  value(which: number): number;
  cell(which: number): HTMLElement;
}

/** How a list selects, sums and names ranks or hosts. */
export interface EndpointKind {
  /** The member of the state that contains the selected ranks or hosts. */
  part: "ranks" | "hosts";
  title: string;
  /** The noun for one endpoint: rank or host. */
  noun: string;
  sent(): FlowKey;
  received(): FlowKey;
  /** Return the full name, with which the filter is compared. */
  name(which: number): string;
  columns?: EndpointColumn[];
}

/** The sort key: bytes, the index of another column, or the number of the rank or host. */
type SortOrder = "sent" | "received" | "number" | number;

/** A table that the user can sort by its headings and filter with a box. */
export class EndpointListPanel implements Panel {
  readonly name: string;
  readonly title: string;
  readonly element = element("section");
  private readonly filter = element("input");
  private readonly place: HTMLElement;
  private readonly columns: EndpointColumn[];
  private order: SortOrder = "sent";
  private encoding: Encoding | null = null;

  constructor(
    private readonly page: Page,
    private readonly kind: EndpointKind,
  ) {
    [this.name, this.title] = [kind.part, kind.title];
    this.columns = kind.columns ?? [];
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
    let { listed, found } = this.list(sums, fits);
    // If no rank has traffic over links, list all ranks.
    if (!found && this.columns.length) ({ listed, found } = this.list(sums, fits, 0));
    const chosen = encoding.state[kind.part] ?? [];
    const rows = listed.map((which) => this.makeRow(which, sums, chosen));
    const note = element("p", rows.length < found ? `the first ${rows.length} of ${found}` : `${found} total`);
    const headers = [
      kind.noun,
      this.makeHead("sends", "sent"),
      this.makeHead("receives", "received"),
      ...this.columns.map(({ title }, index) => this.makeHead(title, index)),
    ];
    const none = element("p", `no ${kind.noun} with traffic over links`);
    replaceChildren(this.place, ...(rows.length ? [note, tableOf(headers, rows)] : [none]));
  }

  private list(
    sums: Record<"sent" | "received", Amounts>,
    fits: (which: number) => boolean,
    order: SortOrder = this.order,
  ): { listed: number[]; found: number } {
    if (order === "sent" || order === "received") {
      const { first, used } = rankLargest(sums[order], MOST, (one, other) => one - other, fits);
      // After these, list the endpoints that have bytes only in the opposite direction.
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
    if (order !== "number") all.sort((one, other) => this.columns[order].value(other) - this.columns[order].value(one));
    return { listed: all.slice(0, MOST), found: all.length };
  }

  private makeHead(text: string, order: SortOrder): HTMLElement {
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
    const others = this.columns.map((column) => column.cell(which));
    return rowOf(head, cell(sums.sent.exact(which)), cell(sums.received.exact(which)), ...others);
  }
}
