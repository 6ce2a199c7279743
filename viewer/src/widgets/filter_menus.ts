// SPDX-License-Identifier: Apache-2.0
// The menus above the picture: kind of picture, colour, rail, level, used links only.

import type { LinkValue } from "../data/link_values";
import { printable } from "../format";
import type { Page } from "../page";
import type { Drawing } from "../pictures/drawing";
import { type Encoding, upperLevel } from "../pictures/encoding";
import { byId } from "./dom";

export class FilterMenus {
  private readonly picture = byId<HTMLSelectElement>("pictures");
  private readonly rail = byId<HTMLSelectElement>("rails");
  private readonly level = byId<HTMLSelectElement>("levels");
  private readonly value = byId<HTMLSelectElement>("values");
  private readonly values: LinkValue[];
  private readonly used = byId<HTMLInputElement>("used");
  private readonly fold = byId<HTMLInputElement>("fold");

  constructor(page: Page, drawings: { name: string; title: string }[]) {
    const { model, names } = page;
    this.values = model.linkValues;
    this.picture.replaceChildren(...drawings.map(({ name, title }) => new Option(title, name)));
    const rails = model.header.rails.map((_, rail) => new Option(names.rail(rail), String(rail)));
    this.rail.replaceChildren(new Option("all rails", ""), ...rails);
    byId("rails-label").hidden = rails.length < 2;
    this.level.replaceChildren(new Option("all levels", ""), ...findLevels(page));
    byId("levels-label").hidden = this.level.options.length < 3;
    const values = model.linkValues.map(({ name }, at) => new Option(printable(name), String(at)));
    this.value.replaceChildren(...(model.header.about === undefined ? [new Option("load", "")] : []), ...values);
    byId("values-label").hidden = this.value.options.length < 2;
    byId("used-label").hidden = model.header.about !== undefined;
    const number = (text: string): number | undefined => (text ? Number(text) : undefined);
    this.picture.addEventListener("change", () => page.choose({ picture: this.picture.value, at: undefined }));
    this.value.addEventListener("change", () => page.choose({ value: number(this.value.value), load: undefined }));
    this.rail.addEventListener("change", () => page.choose({ rail: number(this.rail.value) }));
    this.level.addEventListener("change", () => page.choose({ level: number(this.level.value) }));
    this.used.addEventListener("change", () => page.choose({ used: this.used.checked || undefined }));
    this.fold.addEventListener("change", () =>
      page.choose({ unfold: !this.fold.checked || undefined, open: undefined, at: undefined }),
    );
  }

  show({ state, value }: Encoding, drawing: Drawing): void {
    this.value.value = value ? String(this.values.indexOf(value)) : "";
    this.picture.value = drawing.name;
    this.rail.value = String(state.rail ?? "");
    this.level.value = String(state.level ?? "");
    this.used.checked = state.used ?? false;
    this.fold.checked = !state.unfold;
    this.fold.indeterminate = !state.unfold && (state.open?.length ?? 0) > 0;
    byId("fold-label").hidden = !drawing.isFoldable;
  }
}

/** Return an option for each level of links, from the hosts up. */
function findLevels({ model }: Page): HTMLOptionElement[] {
  const lower = new Map<number, number>();
  for (let end = 0; end < 2 * model.links; end++) {
    const level = upperLevel(model, end);
    const own = model.nodeLevel[model.endNode[end]];
    lower.set(level, Math.min(lower.get(level) ?? level, own));
  }
  const name = (level: number): string => (level ? String(level) : "hosts");
  const levels = [...lower].sort(([one], [other]) => one - other);
  return levels.map(
    ([high, low]) => new Option(low < high ? `${name(low)} – ${high}` : `within ${high}`, String(high)),
  );
}
