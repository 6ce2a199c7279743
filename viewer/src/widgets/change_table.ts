// SPDX-License-Identifier: Apache-2.0
// A table of changes between two runs.

import type { Changes } from "../data/comparison";
import { formatCount } from "../format";
import type { ComparedRun, Run } from "../run";
import { describeChange } from "../text/comparison_text";
import { element, rowOf, tableOf } from "./dom";

/** Return a table of changes, sorted by size, descending. */
export function makeChangeTable(
  own: Run,
  { run, comparison: { measure } }: ComparedRun,
  heading: string,
  { first }: Changes,
  name: (key: number) => string | Node,
): HTMLTableElement {
  const cell = (amount: bigint, bytes: bigint): HTMLElement => {
    const span = element("span", measure.format(Number(amount)));
    span.title = `${formatCount(bytes)} bytes`;
    return span;
  };
  const rows = first.map((change) =>
    rowOf(
      name(change.key),
      cell(change.before, change.bytesBefore),
      cell(change.after, change.bytesAfter),
      changeCell(describeChange(change, measure)),
    ),
  );
  const headers = [own.name, run.name].map((each) => {
    const head = element("span", each);
    [head.className, head.title] = ["run", each];
    return head;
  });
  const table = tableOf([heading, ...headers, "change"], rows);
  table.className = "changes";
  return table;
}

/** Return a change as two spans, difference and percentage, between which a line break is possible. */
function changeCell(text: string): HTMLElement {
  const [amount, ...relative] = text.split(" (");
  const rest = relative.flatMap((each) => [document.createTextNode(" "), element("span", `(${each}`)]);
  return element("span", "", element("span", amount), ...rest);
}
