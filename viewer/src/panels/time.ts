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
  private sums: Float64Array = new Float64Array(BINS);

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
    this.element.append(this.bar.element, axis, element("p", words), this.table);
  }

  show(look: Look): void {
    this.look = look;
    const { ranks, source, time } = look.state;
    const chosen = ranks ?? (source === undefined ? null : [source]);
    const among = chosen ? new Set(chosen) : null;
    const isAmong = (rank: number): boolean => !among || among.has(rank);
    this.sums = this.timeline.bins(BINS, isAmong);
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
    context.fillStyle = theme.ramp[Math.floor(theme.ramp.length / 2)];
    const most = this.sums.reduce((greatest, sum) => Math.max(greatest, sum), 0);
    this.sums.forEach((sum, bin) => {
      const tall = most ? (sum / most) * height : 0;
      context.fillRect((bin * width) / BINS, height - tall, width / BINS, tall);
    });
  }
}
