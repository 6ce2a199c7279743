// SPDX-License-Identifier: Apache-2.0
// The title, the totals, and the coverage: data that were not seen, and modelled data.

import { formatBytes, printable } from "../format";
import type { ComparedRun, Run } from "../run";
import { byId, element } from "./dom";

export function showTitle({ model }: Run): void {
  const title = printable(model.header.title);
  byId("title").textContent = title;
  byId("title").title = title;
  document.title = `${title} - ibprof`;
}

/** Show the totals and the coverage of a run and of the compared run. */
export function showCoverage(run: Run, compared: ComparedRun | null): void {
  const runs = compared ? [run, compared.run] : [run];
  const several = runs.length > 1;
  byId("subtitle").textContent = runs.map((each) => describeTotals(each)).join(" | ");
  const notes = runs.flatMap((each) =>
    describeCoverage(each).map((note) => (several ? `${each.name}: ${note}` : note)),
  );
  // A note that applies to all runs is printed once.
  const common = several
    ? describeCoverage(runs[0]).filter((note) => runs.every((each) => describeCoverage(each).includes(note)))
    : [];
  const own = notes.filter((note) => !common.some((each) => note.endsWith(`: ${each}`)));
  const shown = several ? [...describeMeasure(compared), ...own, ...common] : notes;
  byId("coverage").replaceChildren(...shown.map((note) => element("p", printable(note))));
}

function describeMeasure(compared: ComparedRun | null): string[] {
  if (!compared?.comparison.measure.isShare) return [];
  return ["Note: runs are compared by share: each amount as a part of all bytes that its run has on links"];
}

function describeTotals({ model }: Run): string {
  const { header } = model;
  const unrouted = Object.entries(header.bytes_unrouted).map(
    ([reason, amount]) => `${formatBytes(Number(amount))} not routed: ${printable(reason)}`,
  );
  if (header.about !== undefined) return printable(header.about);
  const parts = [`${formatBytes(Number(header.bytes_routed))} over links`];
  if (header.bytes_on_host !== "0") parts.push(`${formatBytes(Number(header.bytes_on_host))} within hosts`);
  return [...parts, ...unrouted].join("; ");
}

function describeCoverage({ model, table }: Run): string[] {
  const { coverage } = model.header;
  const notes = [
    ...coverage.not_seen.map((note) => `Not seen: ${note}`),
    ...coverage.modelled.map((note) => `Modelled: ${note}`),
    ...coverage.notes.map((note) => `Note: ${note}`),
  ];
  if (!table.hasFlows && model.header.about === undefined)
    notes.push("Note: senders not recorded in this file, so the traffic cannot be filtered by them");
  return notes.length ? notes : ["No known gaps"];
}
