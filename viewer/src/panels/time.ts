// SPDX-License-Identifier: Apache-2.0
// What was sent over time; a span of it is chosen by a drag, by keys, or in the table.

import type { Timeline } from "../data/timeline";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { RangeBar } from "../range_bar";
import { formatBytes, formatSeconds } from "../show";

const BINS = 120;
const LISTED = 24;

export class Time implements Panel {
  readonly name = "time";
  readonly title = "Time";
  readonly element = element("section");
  private readonly timeline: Timeline;
  private readonly bar: RangeBar;
  private readonly draw: () => void;
  private readonly table = scroller("Spans of time");
  private look: Look | null = null;
  /** Of each job that has intervals, what it sent in each bin. */
  private sums: { job: number; bytes: Float64Array }[] = [];

  constructor(private readonly page: Page) {
    if (!page.table.timeline) throw new Error("this file has no time line");
    this.timeline = page.table.timeline;
    const { seconds } = this.timeline;
    this.bar = new RangeBar({
      label: "Span of time",
      describe: (part) => formatSeconds(part * seconds),
      change: (range) => page.choose({ time: range ? range.map((part) => part * seconds) : undefined }),
    });
    this.bar.element.classList.add("tall");
    this.bar.element.id = "time";
    this.draw = this.bar.onPaint((context, width, height) => this.paint(context, width, height));
    this.table.id = "spans";
    const words =
      "Sent by all ranks, or those that are chosen, bytes within hosts included. Drag for a span. The traffic of a span is each pair's bytes by its part in the span; who sent when is recorded, of which region and operation is not.";
    const axis = element("p", `0 s to ${formatSeconds(seconds)}`);
    axis.className = "note";
    this.element.append(this.bar.element, axis, element("p", words), ...this.sayJobs(), this.table);
  }

  /** Which jobs are on top of one another, and which are not there. */
  private sayJobs(): HTMLElement[] {
    const { model, names } = this.page;
    const jobs = model.header.jobs.map((_, job) => job);
    if (jobs.length < 2) return [];
    const name = (job: number): string => names.job(job);
    const { jobs: known } = this.timeline;
    const stacked = `Jobs one above the other, each in its colour: ${known.map(name).join(", ")}.`;
    const missing = jobs.filter((job) => !known.includes(job));
    const lacking = `When ${missing.map(name).join(", ")} sent was not recorded: nothing of it is in a span.`;
    return [element("p", stacked), ...(missing.length ? [element("p", lacking)] : [])];
  }

  show(look: Look): void {
    this.look = look;
    const { ranks, source, time } = look.state;
    const chosen = ranks ?? (source === undefined ? null : [source]);
    const among = chosen ? new Set(chosen) : null;
    const { job: chosenJob } = look.state;
    const { jobOf } = this.timeline;
    const isAmong = (rank: number): boolean =>
      (!among || among.has(rank)) && (chosenJob === undefined || jobOf[rank] === chosenJob);
    this.sums = this.timeline.jobs.map((job) => ({
      job,
      bytes: this.timeline.bins(BINS, (rank) => isAmong(rank) && jobOf[rank] === job),
    }));
    const { seconds } = this.timeline;
    this.bar.set(time ? [time[0] / (seconds || 1), time[1] / (seconds || 1)] : null);
    this.draw();
    const spans = this.timeline.bins(LISTED, isAmong);
    const rows = Array.from(spans, (bytes, at) => {
      const [from, to] = [(at * seconds) / LISTED, ((at + 1) * seconds) / LISTED];
      const press = (): void => this.page.choose({ time: [from, to] });
      return rowOf(button(`${formatSeconds(from)} to ${formatSeconds(to)}`, press), formatBytes(bytes));
    });
    replaceChildren(this.table, tableOf(["span", "bytes sent"], rows));
  }

  private paint(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.look) return;
    const { theme } = this.look;
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, width, height);
    const { jobs } = this.page.model.header;
    const total = (bin: number): number => this.sums.reduce((sum, { bytes }) => sum + bytes[bin], 0);
    const most = Array.from({ length: BINS }, (_, bin) => total(bin)).reduce((one, other) => Math.max(one, other), 0);
    if (!most) return;
    for (let bin = 0; bin < BINS; bin++) {
      let bottom = height;
      for (const { job, bytes } of this.sums) {
        const tall = (bytes[bin] / most) * height;
        const single = theme.ramp[Math.floor(theme.ramp.length / 2)];
        context.fillStyle = jobs.length > 1 ? theme.jobs[job % theme.jobs.length] : single;
        context.fillRect((bin * width) / BINS, bottom - tall, width / BINS, tall);
        bottom -= tall;
      }
    }
  }
}
