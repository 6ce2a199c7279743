// SPDX-License-Identifier: Apache-2.0
// Regions, operations and jobs, each with what it puts on links.

import type { Key } from "../data/loads";
import { button, element, replaceChildren, shareRow, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";

const MOST = 500;

type Part = "region" | "operation" | "job";

export class What implements Panel {
  readonly name = "what";
  readonly title = "What";
  readonly element = element("section");
  private readonly places: Record<Part, HTMLElement>;

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
      job: several ? place("jobs", "Jobs") : element("div"),
    };
  }

  show({ state }: Look): void {
    const { table, names } = this.page;
    this.showPart("region", state, table.by.region(), (key) => names.region(key));
    this.showPart("operation", state, table.by.operation(), (key) => names.operation(key));
    this.showPart("job", state, table.by.job(), (key) => names.job(key));
  }

  private showPart(part: Part, state: Look["state"], key: Key, name: (key: number) => string): void {
    const { first, total } = this.page.table.shares({ ...state, [part]: undefined }, key, MOST);
    const rows = first.map((share) => {
      const chosen = state[part] === share.key;
      const press = (): void => this.page.choose({ [part]: chosen ? undefined : share.key });
      return shareRow(button(name(share.key), press, chosen), share.bytes, total);
    });
    const shown = rows.length ? tableOf([part, "bytes", "share"], rows) : element("p", "not in this file");
    replaceChildren(this.places[part], shown);
  }
}
