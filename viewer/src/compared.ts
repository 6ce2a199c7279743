// SPDX-License-Identifier: Apache-2.0
// What changed from one run to another, in words and tables.

import type { Change, Changes, Kind } from "./data/comparison";
import type { Measure } from "./data/measure";
import { element, rowOf, tableOf } from "./dom";
import { knows } from "./names";
import type { Compared, Page } from "./page";
import { formatBytes, formatCount, sayRelative } from "./show";
import type { Selection } from "./state";

/** What a link end carries in the page's run. */
export function sayOwn(page: Page, compared: Compared, end: number): string {
  const { bytesBefore, before } = changeOf(compared, end);
  return `${page.name}: ${page.table.knows(end) ? say(compared, bytesBefore, before) : "not counted"}`;
}

/** What a link end carries in the run that is compared with, and how much more that is. */
export function sayOther(page: Page, compared: Compared, end: number): string {
  const { run, comparison } = compared;
  if (!run.table.knows(end)) return `${run.name}: not counted`;
  const change = changeOf(compared, end);
  const own = `${run.name}: ${say(compared, change.bytesAfter, change.after)}`;
  return page.table.knows(end) ? `${own}, ${sayChange(change, comparison.measure)}` : own;
}

function changeOf({ comparison, before, after }: Compared, end: number): Change {
  return {
    key: end,
    bytesBefore: before.exact(end),
    bytesAfter: after.exact(end),
    before: comparison.ofBefore(before).exact(end),
    after: comparison.ofAfter(after).exact(end),
  };
}

function say({ comparison: { measure } }: Compared, bytes: bigint, amount: bigint): string {
  return measure.isShare ? `${formatBytes(Number(bytes))}, ${measure.say(Number(amount))}` : formatBytes(Number(bytes));
}

/** What became of an amount, and what part of it that is. */
function sayChange({ before, after }: Change, measure: Measure): string {
  if (before === after) return "the same";
  return `${measure.sayChange(Number(after - before))} (${sayRelative(before, after)})`;
}

/** Whose bytes on a link end changed most: pair, region, operation, each with its change. */
export function sayWhoChanged(page: Page, { comparison }: Compared, selection: Selection, end: number): string {
  const kinds: [Kind, boolean][] = [
    [comparison.hasRankedFlows ? "rankPair" : "hostPair", true],
    ["region", knows(page.model.header.regions)],
    ["operation", knows(page.model.header.operations)],
  ];
  const parts = kinds
    .filter(([, told]) => told)
    .flatMap(([kind]) =>
      comparison
        .find({ ...selection, end }, kind, 1)
        .first.map(
          (change) => `${nameKey(page, comparison, kind, change.key)} ${sayChange(change, comparison.measure)}`,
        ),
    );
  return parts.join("; ");
}

/** What a key of changes is called. */
export function nameKey(page: Page, comparison: Compared["comparison"], kind: Kind, key: number): string {
  const { names } = page;
  if (kind === "region") return knows(page.model.header.regions) ? `region ${names.region(key)}` : names.region(key);
  if (kind === "operation") return names.operation(key);
  if (kind === "job") return `job ${names.job(key)}`;
  const { source, destination } = comparison.pairs(kind);
  return kind === "rankPair"
    ? `rank ${names.rank(source[key])} to rank ${names.rank(destination[key])}`
    : `${names.host(source[key])} to ${names.host(destination[key])}`;
}

/** A table of changes, the greatest first. */
export function tableOfChanges(
  page: Page,
  { run, comparison: { measure } }: Compared,
  what: string,
  { first }: Changes,
  name: (key: number) => string | Node,
): HTMLTableElement {
  const cell = (amount: bigint, bytes: bigint): HTMLElement => {
    const made = element("span", measure.say(Number(amount)));
    made.title = `${formatCount(bytes)} bytes`;
    return made;
  };
  const rows = first.map((change) =>
    rowOf(
      name(change.key),
      cell(change.before, change.bytesBefore),
      cell(change.after, change.bytesAfter),
      changeCell(sayChange(change, measure)),
    ),
  );
  const heads = [page.name, run.name].map((each) => {
    const head = element("span", each);
    [head.className, head.title] = ["run", each];
    return head;
  });
  const made = tableOf([what, ...heads, "change"], rows);
  made.className = "changes";
  return made;
}

/** A change, in two parts that may stand below one another. */
function changeCell(said: string): HTMLElement {
  const [amount, ...part] = said.split(" (");
  const rest = part.flatMap((each) => [document.createTextNode(" "), element("span", `(${each}`)]);
  return element("span", "", element("span", amount), ...rest);
}
