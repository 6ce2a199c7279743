// SPDX-License-Identifier: Apache-2.0
// Elements. All names are put in as text, never as HTML.

import { formatBytes, formatCount, formatShare } from "./show";

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = "",
  ...children: Node[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

export function button(text: string, press: (event: MouseEvent) => void, pressed?: boolean): HTMLButtonElement {
  const made = element("button", text);
  made.type = "button";
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", press);
  return made;
}

/** A place that a long table scrolls in; in the keyboard's reach. */
export function scroller(label: string): HTMLDivElement {
  const made = element("div");
  made.className = "scroll";
  made.tabIndex = 0;
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", label);
  return made;
}

export function tableOf(heads: (string | Node)[], rows: HTMLTableRowElement[]): HTMLTableElement {
  const cells = heads.map((head) => {
    const cell = element("th");
    cell.scope = "col";
    cell.append(head);
    return cell;
  });
  return element("table", "", element("thead", "", element("tr", "", ...cells)), element("tbody", "", ...rows));
}

export function rowOf(name: string | Node, ...cells: (string | Node)[]): HTMLTableRowElement {
  const head = element("th");
  head.scope = "row";
  head.append(name);
  const others = cells.map((each) => {
    const cell = element("td");
    cell.append(each);
    return cell;
  });
  return element("tr", "", head, ...others);
}

/** A row of something that bytes are of. */
export function shareRow(name: string | Node, bytes: bigint, total: bigint): HTMLTableRowElement {
  const amount = element("span", formatCount(bytes));
  amount.title = formatBytes(Number(bytes));
  return rowOf(name, amount, formatShare(bytes, total));
}

/** Puts other children in; what had the keyboard's focus, and is there again by its name, has it again. */
export function replaceChildren(place: HTMLElement, ...children: Node[]): void {
  const { activeElement } = document;
  const name = activeElement && place.contains(activeElement) ? nameOf(activeElement) : "";
  place.replaceChildren(...children);
  if (!name) return;
  const same = [...place.querySelectorAll<HTMLElement>("button, input, [tabindex]")];
  same.find((each) => nameOf(each) === name)?.focus({ preventScroll: true });
}

function nameOf(one: Element): string {
  return `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent ?? ""}`;
}

/** Calls when a canvas or another element has another size. */
export function onResize(target: Element, call: () => void): void {
  new ResizeObserver(call).observe(target);
}
