// SPDX-License-Identifier: Apache-2.0
// Bytes sent over time. A drag, keys or the table select a time range.

import type { Timeline } from "../data/timeline";
import { formatBytes, formatSeconds } from "../format";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../widgets/dom";
import { RangeSlider } from "../widgets/range_slider";

const BINS = 120;
const LISTED = 24;

export class TimePanel implements Panel {
  readonly name = "time";
  readonly title = "Time";
  readonly element = element("section");
  private readonly timeline: Timeline;
  private readonly bar: RangeSlider;
  private readonly draw: () => void;
  private readonly table = scroller("Time ranges");
  private encoding: Encoding | null = null;
  /** Bytes sent in each bin, for each job that has intervals. */
  private sums: { job: number; bytes: Float64Array }[] = [];

  constructor(private readonly page: Page) {
    if (!page.table.timeline) throw new Error("this file has no time line");
    this.timeline = page.table.timeline;
    const { seconds } = this.timeline;
    this.bar = new RangeSlider({
      label: "Time range",
      describe: (part) => formatSeconds(part * seconds),
      change: (range, isRepeated) =>
        page.choose({ time: range ? range.map((part) => part * seconds) : undefined }, isRepeated),
    });
    this.bar.element.classList.add("tall");
    this.bar.element.id = "time";
    this.draw = this.bar.onPaint((context, width, height) => this.paint(context, width, height));
    this.table.id = "spans";
    const words =
      "Bytes sent by all ranks, or by the selected ones, including bytes within hosts. Drag to select a time range. Modelled: its traffic is the bytes of each flow times the part that its pair sent in the range, because the recording has no region or operation per interval.";
    const axis = element("p", `0 s to ${formatSeconds(seconds)}`);
    axis.className = "note";
    this.element.append(this.bar.element, axis, element("p", words), ...this.describeJobs(), this.table);
  }

  /** Describe which jobs are stacked, and which have no time line. */
  private describeJobs(): HTMLElement[] {
    const { model, names } = this.page;
    const jobs = model.header.jobs.map((_, job) => job);
    if (jobs.length < 2) return [];
    const name = (job: number): string => names.job(job);
    const { jobs: known } = this.timeline;
    const stacked = `Jobs are stacked, each in its colour: ${known.map(name).join(", ")}.`;
    const missing = jobs.filter((job) => !known.includes(job));
    const lacking = `No time line was recorded for ${missing.map(name).join(", ")}: time ranges exclude this traffic.`;
    return [element("p", stacked), ...(missing.length ? [element("p", lacking)] : [])];
  }

  show(encoding: Encoding): void {
    this.encoding = encoding;
    const { ranks, source, time } = encoding.state;
    const chosen = ranks ?? (source === undefined ? null : [source]);
    const among = chosen ? new Set(chosen) : null;
    const { job: chosenJob } = encoding.state;
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
    replaceChildren(this.table, tableOf(["time range", "bytes sent"], rows));
  }

  private paint(context: CanvasRenderingContext2D, width: number, height: number): void {
    if (!this.encoding) return;
    const { theme } = this.encoding;
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
