// SPDX-License-Identifier: Apache-2.0
// What stands above and below the picture: what is shown, what the numbers rest on, the colours of jobs.

import { button, byId, element } from "./dom";
import type { Compared, Page, Run } from "./page";
import { THEMES } from "./pictures/colours";
import { formatBytes, printable } from "./show";

export function showTitle({ model }: Run): void {
  const title = printable(model.header.title);
  byId("title").textContent = title;
  byId("title").title = title;
  document.title = `${title} - ibprof`;
}

/** What of the traffic is over links, and what the numbers of a run and of the one beside it rest on. */
export function showCoverage(run: Run, compared: Compared | null): void {
  const runs = compared ? [run, compared.run] : [run];
  const several = runs.length > 1;
  byId("subtitle").textContent = runs.map((each) => sayTotals(each)).join(" | ");
  const notes = runs.flatMap((each) =>
    describeCoverage(each).map((note) => (several ? `${each.name}: ${note}` : note)),
  );
  // What holds for all runs is said once.
  const common = several
    ? describeCoverage(runs[0]).filter((note) => runs.every((each) => describeCoverage(each).includes(note)))
    : [];
  const own = notes.filter((note) => !common.some((each) => note.endsWith(`: ${each}`)));
  const shown = several ? [...sayMeasure(compared), ...own, ...common] : notes;
  byId("coverage").replaceChildren(...shown.map((note) => element("p", printable(note))));
}

function sayMeasure(compared: Compared | null): string[] {
  if (!compared?.comparison.measure.isShare) return [];
  return ["Note: amounts are compared by their share of all bytes that their own run has on links"];
}

function sayTotals({ model }: Run): string {
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
    notes.push("Note: who sends the bytes is not in this file, so they cannot be told apart");
  return notes.length ? notes : ["Nothing is known to be missing"];
}

/** The colours of jobs, where there are several. */
export function showJobs(page: Page): void {
  const { jobs } = page.model.header;
  if (jobs.length < 2) return;
  const items = jobs.map((_, job) =>
    button(page.names.job(job), () => page.choose({ job: page.state.job === job ? undefined : job })),
  );
  items.forEach((item, job) => {
    item.className = `job job-${job % THEMES.light.jobs.length}`;
  });
  byId("jobs-key").replaceChildren(...items);
  byId("jobs-key").hidden = false;
}
