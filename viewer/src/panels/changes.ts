// SPDX-License-Identifier: Apache-2.0
// The panel of the largest changes between two runs: of link directions, pairs, operations, regions and sites.

import type { ChangeKind, Changes } from "../data/comparison";
import type { Page } from "../page";
import { type Encoding, HIDDEN } from "../pictures/encoding";
import type { ComparedRun } from "../run";
import type { State } from "../state";
import { nameChangeKey } from "../text/comparison_text";
import { hasSeveral } from "../text/names";
import { makeChangeTable } from "../widgets/change_table";
import { button, element, replaceChildren } from "../widgets/dom";
import { ListPanel } from "./list_panel";

const LISTED = 20;

export class ChangesPanel extends ListPanel {
  constructor(page: Page) {
    super(page, "changes", "Changes");
  }

  show(encoding: Encoding): void {
    const { compared } = this.page;
    if (!compared) {
      replaceChildren(this.container, element("p", "Only one run is shown: select side by side, or difference"));
      return;
    }
    const { header } = this.page.model;
    const parts = [
      ...this.showEnds(compared, encoding),
      ...(hasSeveral(header.operations) ? this.showKind(compared, encoding.state, "operation", "Operations") : []),
      ...(hasSeveral(header.regions) ? this.showKind(compared, encoding.state, "region", "Regions") : []),
      ...(hasSeveral(header.sites) ? this.showKind(compared, encoding.state, "site", "Call sites") : []),
      ...(hasSeveral(header.jobs) ? this.showKind(compared, encoding.state, "job", "Jobs") : []),
      ...(compared.comparison.hasRankedFlows
        ? this.showKind(compared, encoding.state, "rankPair", "Pairs of ranks")
        : []),
      ...this.showKind(compared, encoding.state, "hostPair", "Pairs of hosts"),
    ];
    replaceChildren(this.container, ...parts);
  }

  private showEnds(compared: ComparedRun, { state, steps }: Encoding): HTMLElement[] {
    const { page } = this;
    const isIncluded = (end: number): boolean => steps[end] !== HIDDEN && compared.comparison.isKnown(end);
    const changes = compared.comparison.list(compared.before, compared.after, LISTED, isIncluded);
    const name = (end: number): Node =>
      this.press(page.names.end(end), state.end === end, { end: state.end === end ? undefined : end });
    return this.list(compared, "Link directions", "transmit port", changes, name);
  }

  private showKind(compared: ComparedRun, state: State, kind: ChangeKind, title: string): HTMLElement[] {
    const { page } = this;
    const { comparison } = compared;
    if (!comparison.hasFlows) return [];
    const own = PARTS[kind];
    const selection = { ...state, ...Object.fromEntries(own.map((part) => [part, undefined])) };
    const changes = comparison.find(selection, kind, LISTED);
    const name = (key: number): Node => {
      const values =
        kind === "rankPair" || kind === "hostPair"
          ? [comparison.pairs(kind).source[key], comparison.pairs(kind).destination[key]]
          : [key];
      const chosen = own.every((part, at) => state[part] === values[at]);
      const part = Object.fromEntries(own.map((each, at) => [each, chosen ? undefined : values[at]]));
      return this.press(nameChangeKey(page, comparison, kind, key), chosen, part);
    };
    return this.list(compared, title, title.toLowerCase(), changes, name);
  }

  private press(name: string, chosen: boolean, part: State): HTMLButtonElement {
    return button(name, () => this.page.choose(part), chosen);
  }

  private list(
    compared: ComparedRun,
    title: string,
    what: string,
    changes: Changes,
    name: (key: number) => Node,
  ): HTMLElement[] {
    const head = element("h3", title);
    if (!changes.count) return [head, element("p", "no change")];
    const note = element("p", `the ${changes.first.length} largest of ${changes.count} changes`);
    const all = changes.first.length === changes.count ? element("p", `${changes.count} changes`) : note;
    return [head, all, makeChangeTable(this.page, compared, what, changes, name)];
  }
}

/** The members of the state that select a key of each kind. */
const PARTS: Record<
  ChangeKind,
  (keyof State & ("region" | "operation" | "site" | "job" | "source" | "destination" | "from" | "to"))[]
> = {
  region: ["region"],
  operation: ["operation"],
  site: ["site"],
  job: ["job"],
  rankPair: ["source", "destination"],
  hostPair: ["from", "to"],
};
