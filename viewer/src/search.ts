// SPDX-License-Identifier: Apache-2.0
// Search by host, switch, GUID, LID, rank: a box with a list of what was found.

import { SWITCH } from "./data/document";
import { byId, element } from "./dom";
import { railLetter } from "./names";
import type { Page } from "./page";
import type { State } from "./state";

const MOST = 12;

interface Found {
  text: string;
  part: State;
}

export class Search {
  private readonly box = byId<HTMLInputElement>("search");
  private readonly list = byId("found");
  private found: Found[] = [];
  private active = 0;

  constructor(private readonly page: Page) {
    this.box.addEventListener("input", () => this.look());
    this.box.addEventListener("focus", () => this.look());
    this.box.addEventListener("blur", () => this.close());
    this.box.addEventListener("keydown", (event) => this.press(event));
    // The box would lose the focus, and the list with it, before the click came.
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

  private look(): void {
    const wanted = this.box.value.trim();
    if (!wanted) {
      this.close();
      return;
    }
    this.found = find(this.page, wanted);
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
      const nothing = element("li", "nothing found");
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

  private choose({ part }: Found): void {
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

/** What a text can mean: `rank 7`, `lid 0x1f`, `0x0002c903...`, part of a name; the most exact first. */
function find(page: Page, wanted: string): Found[] {
  const [, kind = "", rest = ""] = /^(?:(rank|lid|host|guid)\s+)?(.*)$/i.exec(wanted) ?? [];
  const kinds = kind.toLowerCase();
  const found: Found[] = [];
  if (!kinds || kinds === "rank") found.push(...findRank(page, rest));
  if (!kinds || kinds === "lid") found.push(...findLid(page, rest));
  if (!kinds || kinds === "guid") found.push(...findGuid(page, rest));
  if (!kinds || kinds === "host") found.push(...findNames(page, rest, kinds === "host"));
  return found.slice(0, MOST);
}

/** A rank by its number; of several jobs that of each. */
function findRank({ model, names }: Page, text: string): Found[] {
  if (!text) return [];
  return model.header.rank_names.flatMap((name, rank) => {
    if (name !== text && !name.endsWith(`:${text}`)) return [];
    return [{ text: `rank ${names.rank(rank)} on ${names.node(names.nodeOfRank(rank))}`, part: { ranks: [rank] } }];
  });
}

function findLid(page: Page, text: string): Found[] {
  const { model } = page;
  if (!/^(\d+|0x[0-9a-f]{1,4})$/i.test(text)) return [];
  const lid = Number(text);
  const found: Found[] = [];
  for (let port = 0; port < model.lidFirst.length; port++) {
    const first = model.lidFirst[port];
    if (lid < first || lid >= first + model.lidCount[port]) continue;
    found.push({ text: `LID ${lid}: ${nameNode(page, model.lidNode[port])}`, part: { node: model.lidNode[port] } });
  }
  return found;
}

function findGuid(page: Page, text: string): Found[] {
  const digits = text.toLowerCase().replace(/^0x/, "");
  if (!/^[0-9a-f]{4,16}$/.test(digits)) return [];
  const found: Found[] = [];
  for (let node = 0; node < page.model.nodes && found.length < MOST; node++) {
    const guid = page.names.guid(node);
    if (guid.includes(digits)) found.push({ text: `${guid}: ${nameNode(page, node)}`, part: { node } });
  }
  return found;
}

function findNames(page: Page, text: string, hostsAlone: boolean): Found[] {
  const { model, names } = page;
  const wanted = text.toLowerCase();
  const found: (Found & { starts: boolean })[] = [];
  const meet = (name: string, said: string, part: State): void => {
    const at = name.toLowerCase().indexOf(wanted);
    if (at >= 0) found.push({ text: said, part, starts: at === 0 });
  };
  model.header.host_names.forEach((name, host) => {
    meet(name, `host ${names.host(host)}`, { hosts: [host] });
  });
  if (!hostsAlone)
    model.header.node_names.forEach((name, node) => {
      if (model.nodeKind[node] === SWITCH) meet(name, `switch ${nameNode(page, node)}`, { node });
    });
  return found.sort((one, other) => Number(other.starts) - Number(one.starts));
}

function nameNode({ model, names }: Page, node: number): string {
  const letter = railLetter(model, model.nodeRail[node]);
  return `${names.node(node)}${letter ? `, rail ${letter}` : ""}`;
}
