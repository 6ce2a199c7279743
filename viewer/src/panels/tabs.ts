// SPDX-License-Identifier: Apache-2.0
// The panels next to the picture, and their tabs.

import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import { button, byId } from "../widgets/dom";
import { ChangesPanel } from "./changes";
import { DomainPanel } from "./domain";
import { makeHostsPanel, makeRanksPanel } from "./endpoints";
import { LinksPanel } from "./links";
import { PairsPanel } from "./pairs";
import { TimePanel } from "./time";
import { TotalsPanel } from "./totals";

/** Return the panels for which the file has data, in the order of their tabs. */
function makePanels(page: Page): Panel[] {
  const { model, table } = page;
  return [
    ...(page.runs.length > 1 ? [new ChangesPanel(page)] : []),
    ...(model.header.about === undefined ? [new TotalsPanel(page)] : []),
    ...(model.header.rank_names.length ? [makeRanksPanel(page)] : []),
    ...(table.hasFlows ? [makeHostsPanel(page), new PairsPanel(page)] : []),
    ...(model.header.colour === undefined ? [new LinksPanel(page)] : []),
    ...(model.attributes.length || model.grid ? [new DomainPanel(page)] : []),
    ...(table.timeline ? [new TimePanel(page)] : []),
  ];
}

export class Tabs {
  private readonly panels: Panel[];
  private readonly tabs: HTMLButtonElement[];
  private readonly shown = new Map<Panel, Encoding>();

  constructor(private readonly page: Page) {
    this.panels = makePanels(page);
    this.tabs = this.panels.map((panel, at) => this.makeTab(panel, at));
    byId("tabs").replaceChildren(...this.tabs);
    byId("panels").replaceChildren(...this.panels.map((panel) => panel.element));
  }

  show(encoding: Encoding): void {
    const current = this.panels.find((panel) => panel.name === encoding.state.panel) ?? this.panels[0];
    this.panels.forEach((panel, at) => {
      panel.element.hidden = panel !== current;
      this.tabs[at].setAttribute("aria-selected", String(panel === current));
      this.tabs[at].tabIndex = panel === current ? 0 : -1;
    });
    if (this.shown.get(current) === encoding) return;
    this.shown.clear();
    this.shown.set(current, encoding);
    current.show(encoding);
  }

  private makeTab(panel: Panel, at: number): HTMLButtonElement {
    panel.element.id = `panel-${panel.name}`;
    panel.element.setAttribute("role", "tabpanel");
    panel.element.setAttribute("aria-labelledby", `tab-${panel.name}`);
    const tab = button(panel.title, () => this.page.choose({ panel: at ? panel.name : undefined }));
    tab.id = `tab-${panel.name}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.element.id);
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
      next.click();
      next.focus();
    });
    return tab;
  }
}
