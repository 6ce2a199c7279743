// SPDX-License-Identifier: Apache-2.0
// What changed most from one run to the other: link ends, pairs, operations, regions. The difference picture in words.

import { nameKey, tableOfChanges } from "../compared";
import type { Changes, Kind } from "../data/comparison";
import { button, element, replaceChildren } from "../dom";
import { knows } from "../names";
import type { Compared, Page } from "../page";
import { HIDDEN, type Look } from "../pictures/look";
import type { State } from "../state";
import { ScrollingPanel } from "./scrolling";

const LISTED = 20;

export class ChangesPanel extends ScrollingPanel {
  constructor(page: Page) {
    super(page, "changes", "Changes");
  }

  show(look: Look): void {
    const { compared } = this.page;
    if (!compared) {
      replaceChildren(this.place, element("p", "one run alone is shown: choose side by side, or difference"));
      return;
    }
    const { header } = this.page.model;
    const parts = [
      ...this.showEnds(compared, look),
      ...(knows(header.operations) ? this.showKind(compared, look.state, "operation", "Operations") : []),
      ...(knows(header.regions) ? this.showKind(compared, look.state, "region", "Regions") : []),
      ...(knows(header.jobs) ? this.showKind(compared, look.state, "job", "Jobs") : []),
      ...(compared.comparison.hasRankedFlows ? this.showKind(compared, look.state, "rankPair", "Pairs of ranks") : []),
      ...this.showKind(compared, look.state, "hostPair", "Pairs of hosts"),
    ];
    replaceChildren(this.place, ...parts);
  }

  private showEnds(compared: Compared, { state, steps }: Look): HTMLElement[] {
    const { page } = this;
    const among = (end: number): boolean => steps[end] !== HIDDEN && compared.comparison.knows(end);
    const changes = compared.comparison.list(compared.before, compared.after, LISTED, among);
    const name = (end: number): Node =>
      this.press(page.names.end(end), state.end === end, { end: state.end === end ? undefined : end });
    return this.list(compared, "Link ends", "sends on the link", changes, name);
  }

  private showKind(compared: Compared, state: State, kind: Kind, title: string): HTMLElement[] {
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
      return this.press(nameKey(page, comparison, kind, key), chosen, part);
    };
    return this.list(compared, title, title.toLowerCase(), changes, name);
  }

  private press(name: string, chosen: boolean, part: State): HTMLButtonElement {
    return button(name, () => this.page.choose(part), chosen);
  }

  private list(
    compared: Compared,
    title: string,
    what: string,
    changes: Changes,
    name: (key: number) => Node,
  ): HTMLElement[] {
    const head = element("h3", title);
    if (!changes.count) return [head, element("p", "nothing changed")];
    const note = element("p", `the ${changes.first.length} greatest of ${changes.count} that changed`);
    const all = changes.first.length === changes.count ? element("p", `${changes.count} changed`) : note;
    return [head, all, tableOfChanges(this.page, compared, what, changes, name)];
  }
}

/** The parts of the state that choose one of a kind. */
const PARTS: Record<
  Kind,
  (keyof State & ("region" | "operation" | "job" | "source" | "destination" | "from" | "to"))[]
> = {
  region: ["region"],
  operation: ["operation"],
  job: ["job"],
  rankPair: ["source", "destination"],
  hostPair: ["from", "to"],
};
