// SPDX-License-Identifier: Apache-2.0
// What changed from one run to another, in words and tables.

import type { Change, Changes, Kind } from "./data/comparison";
import { element, rowOf, tableOf } from "./dom";
import { knows } from "./names";
import type { Compared, Page } from "./page";
import { formatBytes, formatCount, sayChange } from "./show";
import type { Selection } from "./state";

/** What a link end carries in the page's run. */
export function sayOwn(page: Page, { before }: Compared, end: number): string {
  return `${page.name}: ${page.table.knows(end) ? formatBytes(Number(before.exact(end))) : "not counted"}`;
}

/** What a link end carries in the run that is compared with, and how much more that is. */
export function sayOther(page: Page, { run, before, after }: Compared, end: number): string {
  if (!run.table.knows(end)) return `${run.name}: not counted`;
  if (!page.table.knows(end)) return `${run.name}: ${formatBytes(Number(after.exact(end)))}`;
  const [one, other] = [before.exact(end), after.exact(end)];
  return `${run.name}: ${formatBytes(Number(other))}, ${sayChange(one, other)}`;
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
        .first.map(({ key, before, after }) => `${nameKey(page, comparison, kind, key)} ${sayChange(before, after)}`),
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
  { run }: Compared,
  what: string,
  { first }: Changes,
  name: (key: number) => string | Node,
): HTMLTableElement {
  const rows = first.map(({ key, before, after }: Change) =>
    rowOf(name(key), amountCell(before), amountCell(after), changeCell(before, after)),
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
function changeCell(before: bigint, after: bigint): HTMLElement {
  const [amount, ...part] = sayChange(before, after).split(" (");
  const rest = part.flatMap((each) => [document.createTextNode(" "), element("span", `(${each}`)]);
  return element("span", "", element("span", amount), ...rest);
}

function amountCell(amount: bigint): HTMLElement {
  const made = element("span", formatBytes(Number(amount)));
  made.title = `${formatCount(amount)} bytes`;
  return made;
}
