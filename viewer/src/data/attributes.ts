// SPDX-License-Identifier: Apache-2.0
// The user's attributes of ranks and nodes, and the positions of ranks on the problem's grid.

import type { NumberArray } from "./arrays";

export interface Attribute {
  name: string;
  of: "rank" | "node";
  /** Class names; empty for a numeric attribute. */
  classes: string[];
  /** [rank or node], the number or the index of the class; NaN if the user gave no value. */
  value: NumberArray;
}

export interface RankGrid {
  title: string;
  /** [rank][axis], x, y and z; -1 for ranks without a position. */
  position: NumberArray;
  /** The number of positions along x, y and z. */
  extents: [number, number, number];
}

export function makeGrid(title: string, position: NumberArray): RankGrid {
  const extents: [number, number, number] = [0, 0, 0];
  position.forEach((coordinate, index) => {
    extents[index % 3] = Math.max(extents[index % 3], coordinate + 1);
  });
  return { title, position, extents };
}

/** Return the ranks or nodes of a class. */
export function membersOf({ value }: Attribute, classIndex: number): number[] {
  const members: number[] = [];
  value.forEach((each, index) => {
    if (each === classIndex) members.push(index);
  });
  return members;
}

/** Return the smallest and the largest number, ignoring NaN; undefined if there is none. */
export function rangeOf(values: ArrayLike<number>): [number, number] | undefined {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let index = 0; index < values.length; index++) {
    if (Number.isNaN(values[index])) continue;
    least = Math.min(least, values[index]);
    most = Math.max(most, values[index]);
  }
  return least <= most ? [least, most] : undefined;
}
