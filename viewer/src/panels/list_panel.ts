// SPDX-License-Identifier: Apache-2.0
// A panel with one scrollable list, rebuilt for each encoding.

import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import { element, scroller } from "../widgets/dom";

export abstract class ListPanel implements Panel {
  readonly element = element("section");
  protected readonly container: HTMLElement;

  constructor(
    protected readonly page: Page,
    readonly name: string,
    readonly title: string,
  ) {
    this.container = scroller(title);
    this.container.id = name;
    this.element.append(this.container);
  }

  abstract show(encoding: Encoding): void;
}
