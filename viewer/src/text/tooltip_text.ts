// SPDX-License-Identifier: Apache-2.0
// The text in the tooltip of a node or a link direction.

import { formatLinkValue } from "../data/link_values";
import { formatBytes, formatCount, formatShare, printable } from "../format";
import type { Hit } from "../pictures/drawing";
import type { Encoding } from "../pictures/encoding";
import type { Stub } from "../pictures/folding";
import type { ComparedRun, Run } from "../run";
import { describeOtherLoad, describeOwnLoad } from "./comparison_text";

const LISTED_RANKS = 12;

/** The page's run, and the compared run. */
interface ShownRuns extends Run {
  readonly compared: ComparedRun | null;
}

/** Return the lines of the tooltip; the name is the first line. `encoding` belongs to the picture under the pointer. */
export function describePointed(page: ShownRuns, encoding: Encoding, { node, end, stub }: Hit): string[] {
  if (stub) return describeStub(stub);
  if (node !== undefined) return describeNode(encoding.run, node);
  return end === undefined ? [] : describeEnd(page, encoding, end);
}

function describeStub({ hosts, switches, noun }: Stub): string[] {
  const count = (many: number, one: string, several: string): string[] =>
    many ? [`${formatCount(BigInt(many))} ${many === 1 ? one : several}`] : [];
  const parts = [...count(hosts, noun, `${noun}s`), ...count(switches, "switch", "switches")];
  return [`${parts.join(" and ")} without traffic`, "Click to show."];
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
    ...names.attributesOf("node", node),
    ...(ranks.length ? [`ranks ${ranks.slice(0, LISTED_RANKS).join(", ")}${more}`] : []),
  ];
}

function describeEnd(page: ShownRuns, { run, amounts, isChange, state }: Encoding, end: number): string[] {
  const { compared } = page;
  const name = page.names.end(end);
  const values = run.model.linkValues.map((each) => `${printable(each.name)} ${formatLinkValue(each, end >> 1)}`);
  if (run.model.header.about !== undefined) return [name, ...values];
  if (compared && isChange) return [name, describeOwnLoad(page, compared, end), describeOtherLoad(page, compared, end)];
  const own = run === compared?.run ? compared.after : (compared?.before ?? amounts);
  const amount = own.exact(end);
  const share = formatShare(amount, BigInt(run.model.header.bytes_routed));
  const size = `${formatCount(amount)} bytes (${formatBytes(Number(amount))})`;
  const load = `${size}, ${share} of bytes on links; ${run.names.lineRateTime(end, Number(amount))}`;
  return [
    name,
    run.table.isKnown(end) ? load : "not counted",
    ...(compared
      ? [run === compared.run ? describeOwnLoad(page, compared, end) : describeOtherLoad(page, compared, end)]
      : []),
    ...(amount ? [run.names.describeSenders(state, end)] : []),
    ...values,
  ];
}
