// SPDX-License-Identifier: Apache-2.0
// The search box, with a list of the matches.

import type { Page } from "../page";
import { type SearchResult, search } from "../search";
import { byId, element } from "./dom";

export class SearchBox {
  private readonly box = byId<HTMLInputElement>("search");
  private readonly list = byId("found");
  private found: SearchResult[] = [];
  private active = 0;

  constructor(private readonly page: Page) {
    this.box.addEventListener("input", () => this.update());
    this.box.addEventListener("focus", () => this.update());
    this.box.addEventListener("blur", () => this.close());
    this.box.addEventListener("keydown", (event) => this.press(event));
    // Keep the focus in the box, because the list closes before the click arrives if the box loses the focus.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  private press(event: KeyboardEvent): void {
    event.stopPropagation();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) this.activate((this.active + step + this.found.length) % this.found.length);
    else if (event.key === "Enter" && this.found.length) this.choose(this.found[this.active]);
    else if (event.key === "Escape") {
      this.box.value = "";
      this.box.blur();
    } else return;
    event.preventDefault();
  }

  private update(): void {
    const wanted = this.box.value.trim();
    if (!wanted) {
      this.close();
      return;
    }
    this.found = search(this.page, wanted);
    this.list.replaceChildren(
      ...this.found.map(({ text }, at) => {
        const item = element("li", text);
        item.id = `found-${at}`;
        item.setAttribute("role", "option");
        item.addEventListener("click", () => this.choose(this.found[at]));
        return item;
      }),
    );
    if (!this.found.length) {
      const nothing = element("li", "no match");
      nothing.setAttribute("role", "option");
      nothing.setAttribute("aria-disabled", "true");
      this.list.append(nothing);
    }
    this.list.hidden = false;
    this.box.setAttribute("aria-expanded", "true");
    this.activate(0);
  }

  private activate(which: number): void {
    this.active = which;
    [...this.list.children].forEach((item, at) => {
      item.setAttribute("aria-selected", String(at === which));
    });
    if (this.found.length) this.box.setAttribute("aria-activedescendant", `found-${which}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  private choose({ part }: SearchResult): void {
    this.box.value = "";
    this.box.blur();
    this.page.choose(part);
  }

  private close(): void {
    this.list.hidden = true;
    this.box.setAttribute("aria-expanded", "false");
    this.box.removeAttribute("aria-activedescendant");
  }
}
