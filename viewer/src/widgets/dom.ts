// SPDX-License-Identifier: Apache-2.0
// HTML elements. Names are always inserted as text, never as HTML.

import { formatBytes, formatCount, formatShare } from "../format";

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = "",
  ...children: Node[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  if (text) created.textContent = text;
  created.append(...children);
  return created;
}

/** Return text without line breaks at hyphens of options and names. */
export function unbroken(text: string): Node[] {
  return text.split(/((?<!\S)(?=\S{3,32}(?:\s|$))\S*-\S*)/).map((part, index) => {
    if (index % 2 === 0) return document.createTextNode(part);
    const whole = element("span", part);
    whole.className = "whole";
    return whole;
  });
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

export function button(text: string, press: (event: MouseEvent) => void, pressed?: boolean): HTMLButtonElement {
  const created = element("button", text);
  created.type = "button";
  if (pressed !== undefined) created.setAttribute("aria-pressed", String(pressed));
  created.addEventListener("click", press);
  return created;
}

/** Return a sample of a colour, as a canvas, because the page's content security policy forbids inline styles. */
export function swatch(colour: string): HTMLElement {
  const created = element("canvas");
  created.className = "swatch";
  created.setAttribute("aria-hidden", "true");
  [created.width, created.height] = [12, 12];
  const context = created.getContext("2d");
  if (context) {
    context.fillStyle = colour;
    context.fillRect(0, 0, 12, 12);
  }
  return created;
}

/** Return a scrollable container for a long table, focusable by keyboard. */
export function scroller(label: string): HTMLDivElement {
  const created = element("div");
  created.className = "scroll";
  created.tabIndex = 0;
  created.setAttribute("role", "region");
  created.setAttribute("aria-label", label);
  return created;
}

export function tableOf(headers: (string | Node)[], rows: HTMLTableRowElement[]): HTMLTableElement {
  const cells = headers.map((head) => {
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

/** Return a table row with an amount of bytes and its share. */
export function shareRow(name: string | Node, bytes: bigint, total: bigint): HTMLTableRowElement {
  const amount = element("span", formatCount(bytes));
  amount.title = formatBytes(Number(bytes));
  return rowOf(name, amount, formatShare(bytes, total));
}

/** Replace the children of an element. A new control with the name of the focused control gets the focus. */
export function replaceChildren(container: HTMLElement, ...children: Node[]): void {
  const { activeElement } = document;
  const name = activeElement && container.contains(activeElement) ? nameOf(activeElement) : "";
  container.replaceChildren(...children);
  if (!name) return;
  const same = [...container.querySelectorAll<HTMLElement>("button, input, [tabindex]")];
  same.find((each) => nameOf(each) === name)?.focus({ preventScroll: true });
}

function nameOf(one: Element): string {
  return `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent ?? ""}`;
}

/** Call `call` whenever an element's size changes. */
export function onResize(target: Element, call: () => void): void {
  new ResizeObserver(call).observe(target);
}
