// SPDX-License-Identifier: Apache-2.0
// The panel of regions, operations, call sites and jobs, with the bytes that each of them puts on links.

import type { FlowKey } from "../data/flow_keys";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import { hasSeveral } from "../text/names";
import { button, element, replaceChildren, shareRow, tableOf } from "../widgets/dom";

const MOST = 500;

type Category = "region" | "operation" | "site" | "job";

export class TotalsPanel implements Panel {
  readonly name = "what";
  readonly title = "Totals";
  readonly element = element("section");
  private readonly places: Record<Category, HTMLElement>;

  constructor(private readonly page: Page) {
    const place = (id: string, title: string): HTMLElement => {
      const made = element("div");
      made.id = id;
      this.element.append(element("h3", title), made);
      return made;
    };
    const several = page.model.header.jobs.length > 1;
    this.places = {
      region: place("regions", "Regions"),
      operation: place("operations", "Operations"),
      site: hasSeveral(page.model.header.sites) ? place("sites", "Call sites") : element("div"),
      job: several ? place("jobs", "Jobs") : element("div"),
    };
  }

  show({ state }: Encoding): void {
    const { table, names } = this.page;
    this.showPart("region", state, table.by.region(), (key) => names.region(key));
    this.showPart("operation", state, table.by.operation(), (key) => names.operation(key));
    this.showPart("site", state, table.by.site(), (key) => names.site(key));
    this.showPart("job", state, table.by.job(), (key) => names.job(key));
  }

  private showPart(part: Category, state: Encoding["state"], key: FlowKey, name: (key: number) => string): void {
    const { first, total } = this.page.table.shares({ ...state, [part]: undefined }, key, MOST);
    const rows = first.map((share) => {
      const chosen = state[part] === share.key;
      const press = (): void => this.page.choose({ [part]: chosen ? undefined : share.key });
      return shareRow(button(name(share.key), press, chosen), share.bytes, total);
    });
    const shown = rows.length ? tableOf([part, "bytes", "share"], rows) : element("p", "not recorded in this file");
    replaceChildren(this.places[part], shown);
  }
}
