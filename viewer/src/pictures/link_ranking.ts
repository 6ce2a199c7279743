// SPDX-License-Identifier: Apache-2.0
// The order of link directions, as in all outputs (`link_loads.py`), and groups with about equal load.

import type { Amounts } from "../data/amounts";
import { type Model, SWITCH } from "../data/model";
import { type Ranking, rankLargest, type TimeOrder } from "../data/ranking";

/** Maximum number of link directions that are ranked. */
export const RANKED = 200;

/** The number of groups that are named and numbered. */
export const MARKED = 3;

/** Times of the link directions in a group are at least this fraction of the group's longest time. */
const ALIKE = 0.99;

/** Link directions between the same two levels that need about the same time. */
export interface AlikeLinks {
  /** The most loaded link direction, which represents the group. */
  end: number;
  count: number;
}

export interface LinkOrder extends TimeOrder {
  isIncluded: (end: number) => boolean;
  bySender: (one: number, other: number) => number;
}

/** Return the order by time at line rate, or by bytes if no speed is known. */
export function orderByTime(model: Model, isIncluded: (end: number) => boolean): LinkOrder {
  // A link direction of unknown speed has no time, unless all speeds are unknown.
  const unknown = model.linkGbps.some((gbps) => gbps > 0) ? Number.POSITIVE_INFINITY : 1;
  const rates = Float64Array.from(model.linkGbps, (gbps) => (gbps > 0 ? gbps : unknown));
  return { ...orderByAmount(model, isIncluded), rate: (end) => rates[end >> 1] };
}

export function orderByAmount(
  { endNode, endPort, nodeGuid, nodeKind }: Model,
  isIncluded: (end: number) => boolean,
): LinkOrder {
  const isSwitch = (end: number): boolean => nodeKind[endNode[end]] === SWITCH;
  return {
    isIncluded,
    rate: () => 1,
    precedence: (end) => (isSwitch(end) && isSwitch(end ^ 1) ? 1 : 0),
    bySender: (one, other) => {
      const [guid, against] = [nodeGuid[endNode[one]], nodeGuid[endNode[other]]];
      return guid === against ? endPort[one] - endPort[other] : guid < against ? -1 : 1;
    },
  };
}

export function rankLinks(amounts: Amounts, order: LinkOrder): Ranking {
  return rankLargest(amounts, RANKED, order.bySender, order.isIncluded, order);
}

/** Return the first groups of alike link directions, the most loaded first. */
export function groupAlike({ endNode, nodeLevel }: Model, amounts: Amounts, order: LinkOrder): AlikeLinks[] {
  const taken = new Uint8Array(amounts.length);
  const time = (end: number): number => amounts.approximate(end) / order.rate(end);
  const isLeft = (end: number): boolean => !taken[end] && order.isIncluded(end) && time(end) > 0;
  const levelsOf = (end: number): string => `${nodeLevel[endNode[end]]} ${nodeLevel[endNode[end ^ 1]]}`;
  const groups: AlikeLinks[] = [];
  while (groups.length < MARKED) {
    const [first] = rankLargest(amounts, 1, order.bySender, isLeft, order).first;
    if (first === undefined) break;
    const [least, levels] = [ALIKE * time(first), levelsOf(first)];
    let count = 0;
    for (let end = 0; end < taken.length; end++)
      if (isLeft(end) && time(end) >= least && levelsOf(end) === levels) count += taken[end] = 1;
    groups.push({ end: first, count });
  }
  return groups;
}

/** Return the first link directions of a ranking as groups of one. */
export function eachAlone({ first }: Ranking): AlikeLinks[] {
  return first.slice(0, MARKED).map((end) => ({ end, count: 1 }));
}
