// SPDX-License-Identifier: Apache-2.0
// A sentence on the change between the two compared runs, and its reason. The sentence covers all traffic of both runs,
// whatever the selection.

import { printable } from "../format";
import type { Page } from "../page";
import { byId, element, replaceChildren } from "./dom";

export class ChangeBox {
  constructor(private readonly page: Page) {}

  show(): void {
    const { compared, runs, model, name } = this.page;
    const from = runs.findIndex((run) => run.model === model);
    const to = compared ? runs.indexOf(compared.run) : -1;
    const change = model.header.changes?.find((each) => each.from === from && each.to === to);
    const box = byId("change");
    box.hidden = !change;
    if (!change || !compared) return;
    const title = element("h2", `What changed from ${name} to ${compared.run.name}`);
    replaceChildren(box, title, element("p", printable(change.text)));
  }
}
