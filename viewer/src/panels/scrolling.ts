// SPDX-License-Identifier: Apache-2.0
// A panel that is one place which scrolls: a list that is made anew for each look.

import { element, scroller } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";

export abstract class ScrollingPanel implements Panel {
  readonly element = element("section");
  protected readonly place: HTMLElement;

  constructor(
    protected readonly page: Page,
    readonly name: string,
    readonly title: string,
  ) {
    this.place = scroller(title);
    this.place.id = name;
    this.element.append(this.place);
  }

  abstract show(look: Look): void;
}
