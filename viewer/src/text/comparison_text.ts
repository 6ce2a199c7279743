// SPDX-License-Identifier: Apache-2.0
// Text on changes between two runs.

import type { Change, ChangeKind, Comparison } from "../data/comparison";
import type { Measure } from "../data/measure";
import { formatBytes, formatRelative } from "../format";
import type { ComparedRun, Run } from "../run";
import type { Selection } from "../state";
import { hasSeveral } from "./names";

/** Describe the load of a link direction in the page's run. */
export function describeOwnLoad(own: Run, compared: ComparedRun, end: number): string {
  const { bytesBefore, before } = changeOf(compared, end);
  return `${own.name}: ${own.table.isKnown(end) ? formatAmounts(compared, bytesBefore, before) : "not counted"}`;
}

/** Describe the load of a link direction in the compared run, and the change from the page's run. */
export function describeOtherLoad(own: Run, compared: ComparedRun, end: number): string {
  const { run, comparison } = compared;
  if (!run.table.isKnown(end)) return `${run.name}: not counted`;
  const change = changeOf(compared, end);
  const load = `${run.name}: ${formatAmounts(compared, change.bytesAfter, change.after)}`;
  return own.table.isKnown(end) ? `${load}, ${describeChange(change, comparison.measure)}` : load;
}

function changeOf({ comparison, before, after }: ComparedRun, end: number): Change {
  return {
    key: end,
    bytesBefore: before.exact(end),
    bytesAfter: after.exact(end),
    before: comparison.measureBefore(before).exact(end),
    after: comparison.measureAfter(after).exact(end),
  };
}

function formatAmounts({ comparison: { measure } }: ComparedRun, bytes: bigint, amount: bigint): string {
  const text = formatBytes(Number(bytes));
  return measure.isShare ? `${text}, ${measure.format(Number(amount))}` : text;
}

/** Describe a change as a difference and as a percentage. */
export function describeChange({ before, after }: Change, measure: Measure): string {
  if (before === after) return "unchanged";
  return `${measure.formatChange(Number(after - before))} (${formatRelative(before, after)})`;
}

/** Describe the largest changes on a link direction: of a pair, a region, an operation and a site. */
export function describeLargestChanges(
  own: Run,
  { comparison }: ComparedRun,
  selection: Selection,
  end: number,
): string {
  const { header } = own.model;
  const kinds: ChangeKind[] = [comparison.hasRankedFlows ? "rankPair" : "hostPair"];
  if (hasSeveral(header.regions)) kinds.push("region");
  if (hasSeveral(header.operations)) kinds.push("operation");
  if (hasSeveral(header.sites)) kinds.push("site");
  const describe = (kind: ChangeKind): string[] =>
    comparison
      .find({ ...selection, end }, kind, 1)
      .first.map(
        (change) => `${nameChangeKey(own, comparison, kind, change.key)} ${describeChange(change, comparison.measure)}`,
      );
  return kinds.flatMap(describe).join("; ");
}

/** Return the name of a key of changes. */
export function nameChangeKey({ model, names }: Run, comparison: Comparison, kind: ChangeKind, key: number): string {
  if (kind === "region") return hasSeveral(model.header.regions) ? `region ${names.region(key)}` : names.region(key);
  if (kind === "operation") return names.operation(key);
  if (kind === "site") return names.site(key);
  if (kind === "job") return `job ${names.job(key)}`;
  const { source, destination } = comparison.pairs(kind);
  return kind === "rankPair"
    ? `rank ${names.rank(source[key])} to rank ${names.rank(destination[key])}`
    : `${names.host(source[key])} to ${names.host(destination[key])}`;
}
