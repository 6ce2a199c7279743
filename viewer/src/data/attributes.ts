// SPDX-License-Identifier: Apache-2.0
// What the user told of ranks and nodes, and where ranks are on the problem's own grid.

import type { Small } from "./document";

export interface Attribute {
  name: string;
  of: "rank" | "node";
  /** Names; none for numbers. */
  classes: string[];
  /** For each rank or node, NaN where nothing is told; the number of the class where there are classes. */
  value: Small;
}

/** x, y and z of each rank, one after the other; -1 where it has no place. */
export interface RankGrid {
  title: string;
  place: Small;
  /** Places along x, y and z. */
  extents: [number, number, number];
}

export function makeGrid(title: string, place: Small): RankGrid {
  const extents: [number, number, number] = [0, 0, 0];
  place.forEach((at, index) => {
    extents[index % 3] = Math.max(extents[index % 3], at + 1);
  });
  return { title, place, extents };
}

/** The ranks or nodes of a class. */
export function membersOf({ value }: Attribute, which: number): number[] {
  const members: number[] = [];
  value.forEach((each, index) => {
    if (each === which) members.push(index);
  });
  return members;
}

/** The least and the greatest number told; undefined where none is. */
export function rangeOf(values: ArrayLike<number>): [number, number] | undefined {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let index = 0; index < values.length; index++) {
    if (Number.isNaN(values[index])) continue;
    least = Math.min(least, values[index]);
    most = Math.max(most, values[index]);
  }
  return least <= most ? [least, most] : undefined;
}
