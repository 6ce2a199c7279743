// SPDX-License-Identifier: Apache-2.0
// The legend of jobs, if there are several. A click selects a job.

import type { Page } from "../page";
import { THEMES } from "../pictures/palette";
import { button, byId } from "./dom";

export function showJobLegend(page: Page): void {
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
