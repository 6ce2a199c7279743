// SPDX-License-Identifier: Apache-2.0
// The panel of the run over time: bytes sent, time in MPI and regions of each rank. Users select a time range by
// mouse, keys or table.

import { axisTicks, hourTicks, NO_REGION, TimeGrid } from "../data/time_grid";
import type { Timeline } from "../data/timeline";
import { formatBytes, formatPercent, formatSeconds, printable } from "../format";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import type { Theme } from "../pictures/palette";
import { button, element, replaceChildren, rowOf, scroller, swatch, tableOf } from "../widgets/dom";
import { RangeSlider } from "../widgets/range_slider";
import { TimeRows } from "./time_rows";

const BINS = 240;
const MOST_ROWS = 48;
const LISTED = 24;
const TICKS = 5;
const LEGEND = 7;
const RANKS_IN_WORDS =
  "Bars: bytes sent by all ranks or the selected ones, including bytes within hosts. Drag over bars or rows to select a time range; over several rows, their ranks as well. Click a row to select its ranks. Modelled: the traffic of a time range is the bytes of each flow times the part that its pair sent in the range, because the recording has no operation per interval.";
const JOBS_IN_WORDS =
  "Bars: bytes sent by all jobs or the selected one. Times are UTC. Drag over bars or rows to select a time range. Click a row to select its job. Modelled: the traffic of a time range is the bytes of each flow times the part that its job sent in the range; a job without intervals sends evenly during its run.";

/** The quantity that the cells of the ranks' rows show. */
type RowsKind = "region" | "mpi" | "bytes";

const KIND_TITLES: Record<RowsKind, string> = { region: "regions", mpi: "time in MPI", bytes: "bytes sent" };

export class TimePanel implements Panel {
  readonly name = "time";
  readonly title = "Time";
  readonly element = element("section");
  private readonly timeline: Timeline;
  private readonly grid: TimeGrid;
  private readonly bar: RangeSlider;
  private readonly rows: TimeRows;
  private readonly menu = element("select");
  private readonly legend = element("div");
  private readonly draw: () => void;
  private readonly table = scroller("Time ranges");
  private encoding: Encoding | null = null;
  /** Bytes sent in each bin, for each job that has intervals. */
  private sums: { job: number; bytes: Float64Array }[] = [];

  constructor(private readonly page: Page) {
    if (!page.table.timeline) throw new Error("this file has no time line");
    this.timeline = page.table.timeline;
    const { seconds, intervals, jobOf, isByJob } = this.timeline;
    this.grid = new TimeGrid(intervals, seconds, jobOf.length, BINS, MOST_ROWS);
    this.bar = new RangeSlider({
      label: "Time range",
      describe: (part) => page.names.moment(part * seconds),
      change: (range, isRepeated) => page.choose({ time: this.timeOf(range) }, isRepeated),
    });
    this.bar.element.classList.add("tall");
    this.bar.element.id = "time";
    this.draw = this.bar.onPaint((context, width, height) => this.paint(context, width, height));
    this.table.id = "spans";
    this.rows = new TimeRows(
      this.grid.rows,
      BINS,
      `${isByJob ? "Jobs" : "Ranks"} over time. The slider above selects a time range by keys; the table below has the values of all ${isByJob ? "jobs" : "ranks"}.`,
      (row) => this.nameRow(row),
      {
        choose: (time, rows) => this.choose(time, rows),
        describe: (row, part) => this.describe(row, part),
      },
    );
    this.legend.id = "time-legend";
    this.fillMenu();
    const timed = element("div", "", this.bar.element, this.makeAxis(), this.rows.element);
    timed.className = isByJob ? "timed by-job" : "timed";
    const label = element("label", "Rows show ", this.menu);
    this.element.append(
      timed,
      label,
      this.legend,
      element("p", isByJob ? JOBS_IN_WORDS : RANKS_IN_WORDS),
      ...this.describeJobs(),
      this.table,
    );
  }

  /** Name the jobs that are stacked, and the jobs without intervals. */
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
    const { job: chosenJob } = encoding.state;
    const { jobOf, seconds, isByJob } = this.timeline;
    const chosen = isByJob ? undefined : (ranks ?? (source === undefined ? undefined : [source]));
    const among = chosen && new Set(chosen);
    const isAmong = (rank: number): boolean =>
      (!among || among.has(rank)) && (chosenJob === undefined || jobOf[rank] === chosenJob);
    this.sums = this.timeline.jobs.map((job) => ({
      job,
      bytes: this.timeline.bins(BINS, (rank) => isAmong(rank) && jobOf[rank] === job),
    }));
    const range: [number, number] | null = time ? [time[0] / (seconds || 1), time[1] / (seconds || 1)] : null;
    this.bar.set(range);
    this.draw();
    this.rows.show({
      theme: encoding.theme,
      colour: this.colourOfCells(encoding.theme),
      time: range,
      isChosen: (row) => {
        const [first, last] = this.grid.ranksOf(row);
        for (let rank = first; rank <= last; rank++) if (isAmong(rank)) return true;
        return false;
      },
    });
    replaceChildren(this.legend, ...this.makeLegend(encoding));
    this.listRanges(isAmong);
  }

  private listRanges(isAmong: (rank: number) => boolean): void {
    const { seconds } = this.timeline;
    const { names } = this.page;
    const inside = this.timeline.insideParts(LISTED, isAmong);
    const rows = Array.from(this.timeline.bins(LISTED, isAmong), (bytes, at) => {
      const [from, to] = [(at * seconds) / LISTED, ((at + 1) * seconds) / LISTED];
      const press = (): void => this.page.choose({ time: [from, to] });
      const cells = [formatBytes(bytes), ...(inside ? [formatPercent(inside[at])] : [])];
      return rowOf(button(`${names.moment(from)} to ${names.moment(to)}`, press), ...cells);
    });
    replaceChildren(this.table, tableOf(["time range", "bytes sent", ...(inside ? ["time in MPI"] : [])], rows));
  }

  private timeOf(range: [number, number] | null): number[] | undefined {
    return range ? range.map((part) => part * this.timeline.seconds) : undefined;
  }

  /** Select a time range, the ranks of rows, or both. A click on the selected row clears the selection. */
  private choose(time: [number, number] | null, rows: [number, number] | null): void {
    if (!rows) {
      this.page.choose({ time: this.timeOf(time) });
      return;
    }
    const [first, last] = [this.grid.ranksOf(rows[0])[0], this.grid.ranksOf(rows[1])[1]];
    if (this.timeline.isByJob) {
      const { job } = this.page.state;
      const chosen = first === last && (time || job !== first) ? first : undefined;
      this.page.choose(time ? { time: this.timeOf(time), job: chosen } : { job: chosen });
      return;
    }
    const ranks = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    if (time) this.page.choose({ time: this.timeOf(time), ranks });
    else this.page.choose({ ranks: String(this.page.state.ranks) === String(ranks) ? undefined : ranks });
  }

  private fillMenu(): void {
    const { intervals } = this.timeline;
    const kinds: RowsKind[] = [
      ...((intervals.visits?.names.length ?? 0) > 1 ? (["region"] as const) : []),
      ...(intervals.inside ? (["mpi"] as const) : []),
      "bytes",
    ];
    this.menu.id = "time-kind";
    this.menu.replaceChildren(...kinds.map((kind) => new Option(KIND_TITLES[kind], kind)));
    this.menu.addEventListener("change", () => {
      if (this.encoding) this.show(this.encoding);
    });
  }

  private get kind(): RowsKind {
    return this.menu.value as RowsKind;
  }

  private makeAxis(): HTMLElement {
    const { seconds } = this.timeline;
    const { names, model } = this.page;
    const { began_s: began } = model.header;
    const ticks = began === undefined ? axisTicks(seconds, TICKS) : hourTicks(began, seconds, TICKS);
    const axis = element("div");
    axis.className = "axis";
    axis.append(
      ...ticks.map((tick) => {
        const moment = names.moment(tick);
        const label = element(
          "span",
          began === undefined ? (tick ? moment : "0 s") : moment.replace(/.* (?!00:00)/, ""),
        );
        label.style.left = `${(tick / (seconds || 1)) * 100}%`;
        return label;
      }),
    );
    return axis;
  }

  private nameRow(row: number): string {
    const [first, last] = this.grid.ranksOf(row);
    const { names } = this.page;
    const name = (each: number): string => (this.timeline.isByJob ? names.job(each) : names.rank(each));
    return first === last ? name(first) : `${name(first)}-${name(last)}`;
  }

  private colourOfCells(theme: Theme): (row: number, bin: number) => string | undefined {
    const shade = (ramp: string[], part: number): string =>
      ramp[Math.min(ramp.length - 1, Math.floor(part * ramp.length))];
    if (this.kind === "region") {
      const at = this.grid.regions()?.at;
      return (row, bin) => {
        const place = at?.[row * BINS + bin] ?? NO_REGION;
        return place === NO_REGION ? undefined : colourOfRegion(theme, place);
      };
    }
    if (this.kind === "mpi") {
      const parts = this.grid.insideParts();
      return (row, bin) => (parts?.[row * BINS + bin] ? shade(theme.values, parts[row * BINS + bin]) : undefined);
    }
    const bytes = this.grid.bytes();
    const most = bytes.reduce((one, other) => Math.max(one, other), 0);
    return (row, bin) => (bytes[row * BINS + bin] ? shade(theme.ramp, bytes[row * BINS + bin] / most) : undefined);
  }

  private makeLegend({ theme, state }: Encoding): HTMLElement[] {
    const { header } = this.page.model;
    const { visits } = this.timeline.intervals;
    if (this.kind === "region" && visits) {
      const order = this.grid.regions()?.order ?? [];
      const items = order.slice(0, LEGEND).map((each, place) => {
        const name = visits.names[each];
        const region = header.regions.indexOf(name);
        const isChosen = state.region === region;
        const shown =
          region < 0
            ? element("span", printable(name))
            : button(printable(name), () => this.page.choose({ region: isChosen ? undefined : region }), isChosen);
        return element("span", "", swatch(colourOfRegion(theme, place)), shown);
      });
      const others = order.length - items.length;
      return others > 0
        ? [...items, element("span", "", swatch(theme.node), element("span", `${others} others`))]
        : items;
    }
    const ramp = this.kind === "mpi" ? theme.values : theme.ramp;
    const most = this.grid.bytes().reduce((one, other) => Math.max(one, other), 0);
    const width = formatSeconds(this.grid.seconds / BINS);
    const ends = this.kind === "mpi" ? ["0%", "100% of the time"] : ["0 B", `${formatBytes(most)} per ${width}`];
    return [ramp[0], ramp[ramp.length - 1]].map((colour, at) =>
      element("span", "", swatch(colour), element("span", ends[at])),
    );
  }

  private describe(row: number, part: number): string {
    const { grid } = this;
    const { isByJob } = this.timeline;
    const { names } = this.page;
    const bin = Math.min(BINS - 1, Math.floor(part * BINS));
    const cell = row * BINS + bin;
    const width = grid.seconds / BINS;
    const inside = grid.insideParts();
    const regions = grid.regions();
    const place = regions?.at[cell] ?? NO_REGION;
    return [
      `${isByJob ? "job" : "rank"} ${this.nameRow(row)}, ${names.moment(bin * width)} to ${names.moment((bin + 1) * width)}`,
      `${formatBytes(grid.bytes()[cell])} sent`,
      ...(inside ? [`${formatPercent(inside[cell])} in MPI`] : []),
      ...(regions && place !== NO_REGION
        ? [`region ${printable(this.timeline.intervals.visits?.names[regions.order[place]] ?? "")}`]
        : []),
    ].join("; ");
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
        const [left, right] = [bin, bin + 1].map((edge) => Math.round((edge * width) / BINS));
        context.fillRect(left, bottom - tall, right - left, tall);
        bottom -= tall;
      }
    }
  }
}

function colourOfRegion(theme: Theme, place: number): string {
  return place < LEGEND ? theme.jobs[place % theme.jobs.length] : theme.node;
}
