// SPDX-License-Identifier: Apache-2.0
// Colours of the user's attributes of ranks and nodes.

import { type Attribute, rangeOf } from "../data/attributes";
import type { Model } from "../data/model";
import { STEPS, type Theme } from "./palette";

/** Colours of one attribute: a colour for each class, or a scale of numbers. */
export class AttributeColours {
  readonly range: [number, number] | undefined;

  constructor(readonly attribute: Attribute) {
    this.range = rangeOf(attribute.value);
  }

  /** Return the colour of a rank or node; undefined if it has no value. */
  of(index: number, theme: Theme): string | undefined {
    const value = this.attribute.value[index];
    if (value === undefined || Number.isNaN(value) || !this.range) return undefined;
    if (this.attribute.classes.length) return theme.jobs[value % theme.jobs.length];
    const [least, most] = this.range;
    return theme.values[most > least ? Math.round(((value - least) / (most - least)) * (STEPS - 1)) : STEPS - 1];
  }
}

/** Colours of nodes for any attribute. For an attribute of ranks, a node gets the colour of its first rank. */
export class NodeColours {
  private readonly colours: AttributeColours[];
  private readonly rankOfNode = new Map<number, number>();

  constructor(model: Model) {
    this.colours = model.attributes.map((attribute) => new AttributeColours(attribute));
    const rails = model.header.rails.length;
    for (let index = model.rankNode.length - 1; index >= 0; index--)
      this.rankOfNode.set(model.rankNode[index], Math.floor(index / rails));
  }

  of(attribute: number, node: number, theme: Theme): string | undefined {
    const colours = this.colours[attribute];
    const index = colours.attribute.of === "node" ? node : this.rankOfNode.get(node);
    return index === undefined ? undefined : colours.of(index, theme);
  }
}
