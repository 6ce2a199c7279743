// SPDX-License-Identifier: Apache-2.0
// What is chosen, each part with a button that takes it back; and what there is to say of it.

import { nameKey, sayOther, tableOfChanges } from "./compared";
import type { Kind } from "./data/comparison";
import { sayValue } from "./data/link_values";
import type { Shares } from "./data/loads";
import { button, byId, element, rowOf, shareRow, tableOf } from "./dom";
import { knows, railLetter } from "./names";
import type { Compared, Page } from "./page";
import { type Look, sayAmount } from "./pictures/look";
import { formatSeconds, printable } from "./show";
import type { State } from "./state";

const LISTED = 5;
const NAMED = 3;

export class Chosen {
  constructor(private readonly page: Page) {}

  show(look: Look): void {
    const chips = this.describe(look).map(([text, part]) => {
      const chip = button(`${text} ×`, () => this.page.choose(part));
      chip.title = "take this back";
      chip.setAttribute("aria-label", `${text}: take this back`);
      return chip;
    });
    byId("chips").replaceChildren(...chips);
    byId("chips").hidden = !chips.length;
    byId<HTMLButtonElement>("clear").disabled = !chips.length;
    const details = [...this.describeEnd(look), ...this.describeWays(look)];
    byId("chosen").replaceChildren(...details);
    byId("chosen").hidden = !details.length;
  }

  /** Each part of a choice in words, and what takes it back. */
  private describe(look: Look): [string, State][] {
    const { state } = look;
    const { names } = this.page;
    const list = (what: string, which: number[], name: (one: number) => string): string => {
      const listed = which.slice(0, NAMED).map(name).join(", ");
      return `${what}${which.length > 1 ? "s" : ""} ${listed}${which.length > NAMED ? ` and ${which.length - NAMED} more` : ""}`;
    };
    const parts: [string, State][] = [];
    const { ranks, hosts, source, destination, from, to, region, operation, job, end, node, time } = state;
    if (ranks) parts.push([list("rank", ranks, (rank) => names.rank(rank)), { ranks: undefined }]);
    if (hosts) parts.push([list("host", hosts, (host) => names.host(host)), { hosts: undefined }]);
    if (source !== undefined || destination !== undefined) {
      const name = (rank: number | undefined): string => (rank === undefined ? "any" : names.rank(rank));
      parts.push([`rank ${name(source)} to ${name(destination)}`, { source: undefined, destination: undefined }]);
    }
    if (from !== undefined || to !== undefined) {
      const name = (host: number | undefined): string => (host === undefined ? "any" : names.host(host));
      parts.push([`host ${name(from)} to ${name(to)}`, { from: undefined, to: undefined }]);
    }
    if (region !== undefined) parts.push([`region ${names.region(region)}`, { region: undefined }]);
    if (operation !== undefined) parts.push([names.operation(operation), { operation: undefined }]);
    if (job !== undefined) parts.push([`job ${names.job(job)}`, { job: undefined }]);
    if (end !== undefined) parts.push([`on ${names.end(end)}`, { end: undefined }]);
    if (node !== undefined) parts.push([`through ${names.node(node)}`, { node: undefined }]);
    if (time) parts.push([`${formatSeconds(time[0])} to ${formatSeconds(time[1])}`, { time: undefined }]);
    if (state.rail !== undefined) parts.push([`rail ${names.rail(state.rail)}`, { rail: undefined }]);
    if (state.level !== undefined) parts.push([`links up to level ${state.level}`, { level: undefined }]);
    if (state.load) {
      const [least, most] = state.load.map((amount) => sayAmount(look, amount));
      parts.push([`${look.value ? printable(look.value.name) : "loads"} of ${least} to ${most}`, { load: undefined }]);
    }
    if (state.change) {
      const [least, most] = state.change.map((amount) => look.measure.sayChange(amount));
      parts.push([`changes of ${least} to ${most}`, { change: undefined }]);
    }
    return parts;
  }

  /** Who is on the link end that is chosen. */
  private describeEnd({ state, amounts }: Look): HTMLElement[] {
    const { end } = state;
    if (end === undefined) return [];
    const { table, names, model, compared } = this.page;
    const title = element("h3", `Who is on ${names.end(end)}`);
    if (compared?.comparison.hasFlows) return [title, ...this.describeChanges(compared, state, end)];
    const amount = amounts.exact(end);
    const tables: HTMLElement[] = [];
    const values = model.linkValues.map((each) => rowOf(printable(each.name), sayValue(each, end >> 1)));
    if (values.length) tables.push(tableOf(["of the link", ""], values));
    if (model.header.about !== undefined) return [element("h3", names.end(end)), ...tables];
    const add = (what: string, shares: Shares, name: (key: number) => string): void => {
      const rows = shares.first.map((share) => shareRow(name(share.key), share.bytes, amount));
      const rest = shares.total - shares.first.reduce((sum, share) => sum + share.bytes, 0n);
      if (rest > 0n) rows.push(shareRow(`${shares.count - shares.first.length} others`, rest, amount));
      if (rows.length) tables.push(tableOf([what, "bytes", "share"], rows));
    };
    add("pair", table.shares(state, table.by.endpointPair(), LISTED), (key) => names.endpointPair(key));
    if (knows(model.header.regions))
      add("region", table.shares(state, table.by.region(), LISTED), (key) => names.region(key));
    if (knows(model.header.operations))
      add("operation", table.shares(state, table.by.operation(), LISTED), (key) => names.operation(key));
    if (knows(model.header.jobs)) add("job", table.shares(state, table.by.job(), LISTED), (key) => names.job(key));
    if (!tables.length)
      tables.push(element("p", amount ? "who sends it is not in this file" : "it carries nothing of this"));
    return [title, ...tables];
  }

  /** Who is on a link end in either run. */
  private describeChanges(compared: Compared, state: State, end: number): HTMLElement[] {
    const { page } = this;
    const { comparison } = compared;
    const add = (kind: Kind, what: string): HTMLElement[] => {
      const changes = comparison.find({ ...state, end }, kind, LISTED);
      if (!changes.count) return [];
      return [tableOfChanges(page, compared, what, changes, (key) => nameKey(page, comparison, kind, key))];
    };
    const { header } = page.model;
    const tables = [
      ...add(comparison.hasRankedFlows ? "rankPair" : "hostPair", "pair"),
      ...(knows(header.regions) ? add("region", "region") : []),
      ...(knows(header.operations) ? add("operation", "operation") : []),
    ];
    const sum = element("p", sayOther(page, compared, end));
    return [sum, ...(tables.length ? tables : [element("p", "nothing on it changed")])];
  }

  /** Which way a pair goes on each rail. */
  private describeWays({ state, amounts }: Look): HTMLElement[] {
    const ways = this.page.table.ways(state);
    if (!ways) return [];
    const { names, model } = this.page;
    const items = ways.map((way, rail) => {
      const nodes = way.length ? [model.endNode[way[0]], ...way.map((end) => model.endNode[end ^ 1])] : [];
      const used = way.length && way.every((end) => amounts.rough(end));
      const letter = railLetter(model, rail);
      const words = nodes.length ? nodes.map((node) => names.node(node)).join(" → ") : "no way known";
      return element(
        "li",
        `${letter ? `rail ${letter}: ` : ""}${words}${nodes.length && !used ? " (nothing sent)" : ""}`,
      );
    });
    return [element("h3", "Way on each rail"), element("ul", "", ...items)];
  }
}
