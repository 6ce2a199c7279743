// SPDX-License-Identifier: Apache-2.0
// What is said of the node or link end that is pointed at.

import { sayOther, sayOwn } from "./compared";
import { sayValue } from "./data/link_values";
import type { Page, Run } from "./page";
import type { Hit } from "./pictures/drawing";
import type { Look } from "./pictures/look";
import { formatBytes, formatCount, formatShare, printable } from "./show";

const LISTED_RANKS = 12;

/** `look` is that of the picture that the pointer is on; lines, the name first. */
export function describeHit(page: Page, look: Look, { node, end }: Hit): string[] {
  if (node !== undefined) return describeNode(look.run, node);
  return end === undefined ? [] : describeEnd(page, look, end);
}

function describeNode({ model, names }: Run, node: number): string[] {
  const rails = model.header.rails.length;
  const ranks: string[] = [];
  model.rankNode.forEach((each, index) => {
    if (each === node) ranks.push(names.rank(Math.floor(index / rails)));
  });
  const more = ranks.length > LISTED_RANKS ? ", …" : "";
  return [
    names.node(node),
    ...(model.header.about === undefined ? [`${names.guid(node)}, level ${model.nodeLevel[node]}`] : []),
    ...names.told("node", node),
    ...(ranks.length ? [`ranks ${ranks.slice(0, LISTED_RANKS).join(", ")}${more}`] : []),
  ];
}

function describeEnd(page: Page, { run, amounts, isChange, state }: Look, end: number): string[] {
  const { compared } = page;
  const name = page.names.end(end);
  const values = run.model.linkValues.map((each) => `${printable(each.name)} ${sayValue(each, end >> 1)}`);
  if (run.model.header.about !== undefined) return [name, ...values];
  if (compared && isChange) return [name, sayOwn(page, compared, end), sayOther(page, compared, end)];
  const own = run === compared?.run ? compared.after : (compared?.before ?? amounts);
  const amount = own.exact(end);
  const share = formatShare(amount, BigInt(run.model.header.bytes_routed));
  const carried = `${formatCount(amount)} bytes (${formatBytes(Number(amount))}), ${share} of all; ${run.names.leastTime(end, Number(amount))}`;
  return [
    name,
    run.table.knows(end) ? carried : "not counted",
    ...(compared ? [run === compared.run ? sayOwn(page, compared, end) : sayOther(page, compared, end)] : []),
    ...(amount ? [run.names.whoIsOn(state, end)] : []),
    ...values,
  ];
}
