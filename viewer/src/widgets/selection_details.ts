// SPDX-License-Identifier: Apache-2.0
// Details of the selection: whose bytes load a selected link direction, and the routes of a selected pair.

import type { ChangeKind } from "../data/comparison";
import { formatLinkValue } from "../data/link_values";
import type { Shares } from "../data/load_table";
import { printable } from "../format";
import type { Page } from "../page";
import type { Encoding } from "../pictures/encoding";
import type { ComparedRun } from "../run";
import type { State } from "../state";
import { describeOtherLoad, nameChangeKey } from "../text/comparison_text";
import { hasSeveral, railPrefix } from "../text/names";
import { makeChangeTable } from "./change_table";
import { byId, element, rowOf, shareRow, tableOf } from "./dom";

const LISTED = 5;

export class SelectionDetails {
  constructor(private readonly page: Page) {}

  show(encoding: Encoding): void {
    const details = [...this.describeEnd(encoding), ...this.describeRoutes(encoding)];
    byId("selection").replaceChildren(...details);
    byId("selection").hidden = !details.length;
  }

  /** Return the senders on the selected link direction. */
  private describeEnd({ state, amounts }: Encoding): HTMLElement[] {
    const { end } = state;
    if (end === undefined) return [];
    const { names, model, compared } = this.page;
    const title = element("h3", `Traffic on ${names.end(end)}`);
    if (compared?.comparison.hasFlows) return [title, ...this.describeChanges(compared, state, end)];
    const values = model.linkValues.map((each) => rowOf(printable(each.name), formatLinkValue(each, end >> 1)));
    const tables = values.length ? [tableOf(["link property", ""], values)] : [];
    if (model.header.about !== undefined) return [element("h3", names.end(end)), ...tables];
    const amount = amounts.exact(end);
    const shares = [...tables, ...this.makeShareTables(state, amount)];
    if (!shares.length)
      shares.push(element("p", amount ? "senders not recorded in this file" : "no traffic of this selection"));
    return [title, ...shares];
  }

  /** Return the tables of senders, receivers, regions, operations and jobs on the selected link direction. */
  private makeShareTables(state: State, amount: bigint): HTMLElement[] {
    const { table, names, model } = this.page;
    const tables: HTMLElement[] = [];
    const add = (heading: string, shares: Shares, name: (key: number) => string): void => {
      const rows = shares.first.map((share) => shareRow(name(share.key), share.bytes, amount));
      const rest = shares.total - shares.first.reduce((sum, share) => sum + share.bytes, 0n);
      if (rest > 0n) rows.push(shareRow(`${shares.count - shares.first.length} others`, rest, amount));
      if (rows.length) tables.push(tableOf([heading, "bytes", "share"], rows));
    };
    add("pair", table.shares(state, table.by.endpointPair(), LISTED), (key) => names.endpointPair(key));
    if (hasSeveral(model.header.regions))
      add("region", table.shares(state, table.by.region(), LISTED), (key) => names.region(key));
    if (hasSeveral(model.header.operations))
      add("operation", table.shares(state, table.by.operation(), LISTED), (key) => names.operation(key));
    if (hasSeveral(model.header.sites))
      add("site", table.shares(state, table.by.site(), LISTED), (key) => names.site(key));
    if (hasSeveral(model.header.jobs)) add("job", table.shares(state, table.by.job(), LISTED), (key) => names.job(key));
    return tables;
  }

  /** Return the changes on the selected link direction between the two runs. */
  private describeChanges(compared: ComparedRun, state: State, end: number): HTMLElement[] {
    const { page } = this;
    const { comparison } = compared;
    const add = (kind: ChangeKind, heading: string): HTMLElement[] => {
      const changes = comparison.find({ ...state, end }, kind, LISTED);
      if (!changes.count) return [];
      return [makeChangeTable(page, compared, heading, changes, (key) => nameChangeKey(page, comparison, kind, key))];
    };
    const { header } = page.model;
    const tables = [
      ...add(comparison.hasRankedFlows ? "rankPair" : "hostPair", "pair"),
      ...(hasSeveral(header.regions) ? add("region", "region") : []),
      ...(hasSeveral(header.operations) ? add("operation", "operation") : []),
      ...(hasSeveral(header.sites) ? add("site", "site") : []),
    ];
    const sum = element("p", describeOtherLoad(page, compared, end));
    return [sum, ...(tables.length ? tables : [element("p", "no change on this link direction")])];
  }

  /** Return the route of the selected pair on each rail. */
  private describeRoutes({ state, amounts }: Encoding): HTMLElement[] {
    const routes = this.page.table.pairRoutes(state);
    if (!routes) return [];
    const { names, model } = this.page;
    const items = routes.map((route, rail) => {
      const nodes = route.length ? [model.endNode[route[0]], ...route.map((end) => model.endNode[end ^ 1])] : [];
      const used = route.length && route.every((end) => amounts.approximate(end));
      const text = nodes.length ? nodes.map((node) => names.node(node)).join(" → ") : "no route";
      return element("li", `${railPrefix(model, rail)}${text}${nodes.length && !used ? " (no traffic)" : ""}`);
    });
    return [element("h3", "Route on each rail"), element("ul", "", ...items)];
  }
}
