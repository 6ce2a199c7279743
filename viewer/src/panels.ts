// SPDX-License-Identifier: Apache-2.0
// Lists beside the picture. All names are put in as text, never as HTML.

import type { Theme } from "./colours";
import type { Flows, Model } from "./document";
import { type Amounts, keyOf, type LoadTable, pairOf, type Selection, type Share } from "./loads";
import { Matrix } from "./matrix";
import { formatBytes, formatCount, formatSeconds, formatShare, printable } from "./show";

const HOTTEST = 3;
const NAMED = 5;
const LISTED_LINKS = 100;
const LISTED_RANKS = 1000;
const LISTED_PAIRS = 50;
const NO_RANK = -1;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = "",
  ...children: Node[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

export class Names {
  constructor(private readonly model: Model) {}

  node(node: number): string {
    return node < 0 ? "unknown" : printable(this.model.header.node_names[node]);
  }

  /** The sending side of a link end first. */
  end(end: number): string {
    const { endNode, endPort } = this.model;
    const other = end ^ 1;
    return `${this.node(endNode[end])} port ${endPort[end]} to ${this.node(endNode[other])} port ${endPort[other]}`;
  }

  rank(rank: number): string {
    return printable(this.model.header.rank_names[rank] ?? String(rank));
  }

  region(region: number): string {
    return nameOrAll(this.model.header.regions[region], "regions");
  }

  operation(operation: number): string {
    return nameOrAll(this.model.header.operations[operation], "operations");
  }
}

function nameOrAll(name: string, what: string): string {
  return name === "*" ? `all ${what}` : printable(name);
}

/** Gives link ends by what they carry, the greatest first; those between switches first among equals. */
export function rankEnds(model: Model, amounts: Amounts): number[] {
  const between = (end: number): number =>
    model.nodeKind[model.endNode[end]] === 1 && model.nodeKind[model.endNode[end ^ 1]] === 1 ? 1 : 0;
  const used: number[] = [];
  for (let end = 0; end < 2 * model.links; end++) if (amounts.rough(end)) used.push(end);
  return used.sort(
    (one, other) => amounts.rough(other) - amounts.rough(one) || between(other) - between(one) || one - other,
  );
}

export function leastTime(model: Model, end: number, amount: number): string {
  const gbps = model.linkGbps[end >> 1];
  return Number.isNaN(gbps) ? "speed unknown" : `at least ${formatSeconds((amount * 8) / (gbps * 1e9))}`;
}

/** Who is most on a link end, in a sentence: rank pair, region, operation, each with its share. */
export function describeEnd(model: Model, table: LoadTable, names: Names, selection: Selection, end: number): string {
  if (!model.flows) return "who sends it is not in this file";
  const on = { ...selection, end };
  const pairs = table.shares(on, pairKey(model));
  const total = pairs.reduce((sum, each) => sum + each.bytes, 0n);
  const said = (shares: Share[], name: (key: number) => string): string =>
    shares.length ? `${name(shares[0].key)} ${formatShare(shares[0].bytes, total)}` : "";
  const parts = [said(pairs, (key) => pairName(model, names, key))];
  if (model.header.regions.some((name) => name !== "*"))
    parts.push(
      said(
        table.shares(on, (flows, flow) => flows.region[flow]),
        (key) => `region ${names.region(key)}`,
      ),
    );
  if (model.header.operations.some((name) => name !== "*"))
    parts.push(
      said(
        table.shares(on, (flows, flow) => flows.operation[flow]),
        (key) => names.operation(key),
      ),
    );
  return parts.join("; ");
}

/** A number for the pair of a flow: of ranks, else, below 0, of addresses. */
function pairKey(model: Model): (flows: Flows, flow: number) => number {
  const [ranks, addresses] = [model.header.rank_names.length, model.flows?.addressNode.length ?? 0];
  return (flows, flow) =>
    flows.sourceRank[flow] === NO_RANK
      ? -1 - keyOf(flows.source[flow], flows.destination[flow], addresses)
      : keyOf(flows.sourceRank[flow], flows.destinationRank[flow], ranks);
}

function pairName(model: Model, names: Names, key: number): string {
  if (key >= 0) {
    const [source, destination] = pairOf(key, model.header.rank_names.length);
    return `rank ${names.rank(source)} to rank ${names.rank(destination)}`;
  }
  const address = model.flows?.addressNode ?? [];
  const [source, destination] = pairOf(-1 - key, address.length);
  return `${names.node(address[source])} to ${names.node(address[destination])}`;
}

export class Panels {
  private readonly names: Names;
  private readonly matrix: Matrix | null;

  constructor(
    private readonly model: Model,
    private readonly table: LoadTable,
    private readonly choose: (part: Selection) => void,
  ) {
    this.names = new Names(model);
    const ranks = model.flows?.sourceRank.some((rank) => rank !== NO_RANK) ? model.header.rank_names.length : 0;
    byId("pairs-section").hidden = !ranks;
    this.matrix = ranks
      ? new Matrix(byId<HTMLCanvasElement>("matrix"), ranks, (source, destination) => choose({ source, destination }))
      : null;
  }

  /** Who sends to whom over links, apart from what pair is chosen. */
  showPairs(selection: Selection, logarithmic: boolean, theme: Theme): void {
    if (!this.matrix) return;
    const ranks = this.model.header.rank_names.length;
    const pairs = this.table
      .shares({ ...selection, source: undefined, destination: undefined }, pairKey(this.model))
      .filter((share) => share.key >= 0);
    this.matrix.show(pairs, logarithmic, theme);
    const total = pairs.reduce((sum, share) => sum + share.bytes, 0n);
    const rows = pairs.slice(0, LISTED_PAIRS).map((share) => {
      const [source, destination] = pairOf(share.key, ranks);
      const chosen = selection.source === source && selection.destination === destination;
      const part = chosen ? { source: undefined, destination: undefined } : { source, destination };
      return row(pairName(this.model, this.names, share.key), share.bytes, total, () => this.choose(part), chosen);
    });
    const note = element("p", `${rows.length} of ${pairs.length} pairs that load links`);
    byId("pairs").replaceChildren(note, tableOf(["pair", "bytes", "share"], rows));
  }

  show(selection: Selection, amounts: Amounts, ranked: number[]): void {
    this.showHottest(selection, amounts, ranked);
    this.showChosen(selection, amounts);
    const without = (part: keyof Selection): Selection => ({ ...selection, [part]: undefined });
    this.showShares(
      "regions",
      "region",
      this.table.shares(without("region"), (flows, flow) => flows.region[flow]),
      selection,
    );
    this.showShares(
      "operations",
      "operation",
      this.table.shares(without("operation"), (flows, flow) => flows.operation[flow]),
      selection,
    );
    this.showRanks(selection);
    this.showLinks(amounts, ranked);
  }

  private showHottest(selection: Selection, amounts: Amounts, ranked: number[]): void {
    const total = BigInt(this.model.header.bytes_routed);
    const items = ranked.slice(0, HOTTEST).map((end) => {
      const button = element("button", this.names.end(end));
      button.type = "button";
      button.dataset.end = String(end);
      button.addEventListener("click", () => this.choose({ end }));
      const amount = amounts.exact(end);
      const carried = `${formatBytes(Number(amount))}, ${formatShare(amount, total)} of all bytes on links; ${leastTime(this.model, end, Number(amount))}`;
      return element(
        "li",
        "",
        button,
        element("p", carried),
        element("p", describeEnd(this.model, this.table, this.names, selection, end)),
      );
    });
    if (!items.length) items.push(element("li", "no link carries anything"));
    byId("hot").replaceChildren(...items);
  }

  /** Who is on the link end that is chosen. */
  private showChosen(selection: Selection, amounts: Amounts): void {
    const { end } = selection;
    byId("chosen").hidden = end === undefined;
    if (end === undefined) return;
    byId("chosen-title").textContent = this.names.end(end);
    const amount = amounts.exact(end);
    const pairs = this.table.shares(selection, pairKey(this.model));
    const rows = pairs
      .slice(0, NAMED)
      .map((share) => row(pairName(this.model, this.names, share.key), share.bytes, amount));
    const rest = pairs.slice(NAMED).reduce((sum, share) => sum + share.bytes, 0n);
    if (rest) rows.push(row(`${pairs.length - NAMED} other pairs`, rest, amount));
    byId("shares").replaceChildren(tableOf(["pair", "bytes", "share"], rows));
  }

  private showShares(id: string, part: "region" | "operation", shares: Share[], selection: Selection): void {
    const total = shares.reduce((sum, share) => sum + share.bytes, 0n);
    const rows = shares.map((share) => {
      const chosen = selection[part] === share.key;
      const name = part === "region" ? this.names.region(share.key) : this.names.operation(share.key);
      return row(name, share.bytes, total, () => this.choose({ [part]: chosen ? undefined : share.key }), chosen);
    });
    byId(id).replaceChildren(rows.length ? tableOf([part, "bytes", "share"], rows) : element("p", "not in this file"));
  }

  private showRanks(selection: Selection): void {
    const sent = this.table
      .shares({ ...selection, rank: undefined }, (flows, flow) => flows.sourceRank[flow])
      .filter((share) => share.key !== NO_RANK);
    const total = sent.reduce((sum, share) => sum + share.bytes, 0n);
    const rails = this.model.header.rails.length;
    const rows = sent.slice(0, LISTED_RANKS).map((share) => {
      const node =
        this.model.rankNode.subarray(share.key * rails, (share.key + 1) * rails).find((each) => each >= 0) ?? -1;
      const name = `${this.names.rank(share.key)} on ${this.names.node(node)}`;
      const chosen = selection.rank === share.key;
      return row(name, share.bytes, total, () => this.choose({ rank: chosen ? undefined : share.key }), chosen);
    });
    const none = element("p", "this traffic knows no ranks");
    byId("ranks").replaceChildren(rows.length ? tableOf(["rank", "bytes over links", "share"], rows) : none);
  }

  private showLinks(amounts: Amounts, ranked: number[]): void {
    const total = BigInt(this.model.header.bytes_routed);
    const rows = ranked
      .slice(0, LISTED_LINKS)
      .map((end) => row(this.names.end(end), amounts.exact(end), total, () => this.choose({ end })));
    const note = element(
      "p",
      `${Math.min(ranked.length, LISTED_LINKS)} of ${ranked.length} link ends that carry anything`,
    );
    byId("links").replaceChildren(note, tableOf(["sends on the link", "bytes", "share"], rows));
  }
}

function row(name: string, bytes: bigint, total: bigint, choose?: () => void, chosen?: boolean): HTMLTableRowElement {
  const cell = element("th");
  cell.scope = "row";
  if (choose) {
    const button = element("button", name);
    button.type = "button";
    if (chosen !== undefined) button.setAttribute("aria-pressed", String(chosen));
    button.addEventListener("click", choose);
    cell.append(button);
  } else cell.textContent = name;
  const amount = element("td", formatCount(bytes));
  amount.title = formatBytes(Number(bytes));
  return element("tr", "", cell, amount, element("td", formatShare(bytes, total)));
}

function tableOf(heads: string[], rows: HTMLTableRowElement[]): HTMLTableElement {
  const cells = heads.map((head) => {
    const cell = element("th", head);
    cell.scope = "col";
    return cell;
  });
  return element("table", "", element("thead", "", element("tr", "", ...cells)), element("tbody", "", ...rows));
}
