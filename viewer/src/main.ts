// SPDX-License-Identifier: Apache-2.0
// The page: one state, and all that shows it.

import { Chosen } from "./chosen";
import { ColourBar } from "./colour_bar";
import type { Amounts } from "./data/amounts";
import { type Model, readDocument } from "./data/document";
import { LoadTable } from "./data/loads";
import { button, byId, element } from "./dom";
import { Filters } from "./filters";
import { Hot } from "./hot";
import { listenToKeys } from "./keys";
import { Names } from "./names";
import type { Page } from "./page";
import { Tabs } from "./panels/all";
import { NodeColours } from "./pictures/attribute_colours";
import { Cells } from "./pictures/cells";
import { THEMES } from "./pictures/colours";
import type { Drawing, Hit } from "./pictures/drawing";
import { Lines } from "./pictures/lines";
import { type Look, makeLook } from "./pictures/look";
import { savePng, saveSvg } from "./pictures/save";
import { Stage } from "./pictures/stage";
import { Search } from "./search";
import { formatBytes, formatCount, formatShare, printable } from "./show";
import { addressed, differ, FILTER, readState, SELECTION, type State, writeState } from "./state";
import { Tip } from "./tip";

/** Beyond so many links lines hide one another. */
const CROWDED = 10000;
const LISTED_RANKS = 12;

/** A picture, made when it is first shown: of a large fabric that takes a while. */
interface DrawingKind {
  name: string;
  title: string;
  make(): Drawing;
  made?: Drawing;
}

class View implements Page {
  readonly table: LoadTable;
  readonly names: Names;
  state: State = {};
  private readonly stage: Stage;
  private readonly tip = new Tip();
  private readonly drawings: DrawingKind[];
  private readonly tabs: Tabs;
  private readonly hot: Hot;
  private readonly chosen: Chosen;
  private readonly bar: ColourBar;
  private readonly filters: Filters;
  private amounts: Amounts;
  private look: Look;
  /** Of the ranked link ends, the one that keys have gone to. */
  private cursor = -1;

  constructor(readonly model: Model) {
    this.table = new LoadTable(model);
    this.names = new Names(model, this.table);
    const jobs = findJobs(model, this.table);
    const told = new NodeColours(model);
    const colourOf = (node: number, { state, theme }: Look): string | null => {
      if (state.colour !== undefined) return told.of(state.colour, node, theme) ?? null;
      const job = jobs.get(node);
      if (job === undefined) return null;
      return model.header.jobs.length > 1 ? theme.jobs[job % theme.jobs.length] : theme.job;
    };
    this.drawings = [
      { name: "lines", title: "Network", make: () => new Lines(model, colourOf) },
      { name: "cells", title: "Cells", make: () => new Cells(model) },
    ];
    this.stage = new Stage(byId<HTMLCanvasElement>("picture"), {
      hover: (hit, x, y) => this.point(hit, x, y),
      choose: (hit) => this.chooseHit(hit),
      settle: () => this.noteView(),
    });
    this.hot = new Hot(this);
    this.chosen = new Chosen(this);
    this.bar = new ColourBar(this);
    this.filters = new Filters(this, this.drawings);
    new Search(this);
    this.tabs = new Tabs(this);
    this.state = readState(addressed.location.hash, model);
    this.amounts = this.table.ofEnds(this.state);
    this.look = this.makeLook();
    this.showHeads();
    this.listen();
    this.show();
  }

  /** For tests and scripts: what the page shows, as numbers. */
  readonly api = {
    loads: (): string[][] =>
      Array.from({ length: this.model.links }, (_, link) =>
        [2 * link, 2 * link + 1].map((end) => this.amounts.exact(end).toString()),
      ),
    /** Link ends that are drawn with a colour. */
    lit: (): number[] =>
      Array.from(this.look.steps.keys()).filter((end) => this.look.steps[end] > 0 && this.look.steps[end] < 255),
    ways: (): number[] => this.look.ways,
    locateEnd: (end: number): [number, number] => this.stage.locateEnd(end),
    placeOfEnd: (end: number): [number, number, number, number] => this.stage.placeOfEnd(end),
    locateNode: (node: number): [number, number] | undefined => this.stage.locateNode(node),
    find: (x: number, y: number): Hit => this.stage.find(x, y),
    redraw: (): void => this.stage.redraw(),
    pan: (x: number, y: number): void => this.stage.pan(x, y),
    choose: (part: State): void => this.choose(part),
  };

  choose(part: State): void {
    this.go({ ...this.state, ...part });
    this.note();
  }

  /** Goes to another state; only what it changes is computed anew. */
  private go(state: State): void {
    const before = this.state;
    this.state = state;
    if (differ(before, state, SELECTION)) {
      this.amounts = this.table.ofEnds(state);
      this.cursor = -1;
    }
    const other = differ(before, state, [...SELECTION, ...FILTER, "log", "theme", "used", "colour"]);
    this.look = other ? this.makeLook() : { ...this.look, state };
    this.show();
  }

  private makeLook(): Look {
    const theme = THEMES[this.isDark ? "dark" : "light"];
    return makeLook(this.model, this.table, this.state, theme, this.amounts);
  }

  private get isDark(): boolean {
    if (this.state.theme) return this.state.theme === "dark";
    return window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  private get drawing(): Drawing {
    const wanted = this.state.picture ?? (this.model.links > CROWDED ? "cells" : "lines");
    const kind = this.drawings.find(({ name }) => name === wanted) ?? this.drawings[0];
    kind.made ??= kind.make();
    return kind.made;
  }

  private show(): void {
    const { look } = this;
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    byId("log").setAttribute("aria-pressed", String(this.state.log ?? false));
    this.stage.show(this.drawing, look);
    this.bar.show(look);
    this.filters.show(look, this.drawing);
    this.chosen.show(look);
    this.hot.show(look);
    this.tabs.show(look);
    this.tip.hide();
  }

  private note(): void {
    addressed.history.replaceState(null, "", writeState(this.state));
  }

  private noteView(): void {
    this.state = { ...this.state, at: this.stage.at() };
    this.look = { ...this.look, state: this.state };
    this.note();
  }

  private clear(): void {
    this.choose(Object.fromEntries([...SELECTION, ...FILTER].map((part) => [part, undefined])));
  }

  private save(kind: "png" | "svg"): void {
    const { width, height } = this.stage.size();
    const chips = Array.from(byId("chips").children, (chip) => (chip.textContent ?? "").replace(/ ×$/, ""));
    const coverage = Array.from(byId("coverage").children, (note) => note.textContent).join("; ");
    const captions = { title: byId("title").textContent ?? "", choice: chips.join("; ") || "all traffic", coverage };
    const sheet = { drawing: this.drawing, look: this.look, view: this.stage.transform, width, height, captions };
    if (kind === "png") savePng(sheet, 2);
    else saveSvg(sheet);
  }

  private showHeads(): void {
    const { header } = this.model;
    const title = printable(header.title);
    byId("title").textContent = title;
    byId("title").title = title;
    document.title = `${title} - ibprof`;
    const unrouted = Object.entries(header.bytes_unrouted).map(
      ([reason, amount]) => `${formatBytes(Number(amount))} not routed: ${printable(reason)}`,
    );
    const parts = [`${formatBytes(Number(header.bytes_routed))} over links`];
    if (header.bytes_on_host !== "0") parts.push(`${formatBytes(Number(header.bytes_on_host))} within hosts`);
    byId("subtitle").textContent = [...parts, ...unrouted].join("; ");
    const { coverage } = header;
    const notes = [
      ...coverage.not_seen.map((note) => `Not seen: ${note}`),
      ...coverage.modelled.map((note) => `Modelled: ${note}`),
      ...coverage.notes.map((note) => `Note: ${note}`),
    ];
    if (!this.table.hasFlows) notes.push("Note: who sends the bytes is not in this file, so they cannot be told apart");
    if (!notes.length) notes.push("Nothing is known to be missing");
    byId("coverage").replaceChildren(...notes.map((note) => element("p", printable(note))));
    this.showJobs();
  }

  /** The colours of jobs, where there are several. */
  private showJobs(): void {
    const { jobs } = this.model.header;
    if (jobs.length < 2) return;
    const items = jobs.map((_, job) =>
      button(this.names.job(job), () => this.choose({ job: this.state.job === job ? undefined : job })),
    );
    items.forEach((item, job) => {
      item.className = `job job-${job % THEMES.light.jobs.length}`;
    });
    byId("jobs-key").replaceChildren(...items);
    byId("jobs-key").hidden = false;
  }

  private listen(): void {
    const help = byId<HTMLDialogElement>("help");
    const actions = {
      fit: () => this.stage.fit(),
      clear: () => this.clear(),
      log: () => this.choose({ log: !this.state.log || undefined }),
      theme: () => this.choose({ theme: this.isDark ? "light" : "dark" }),
      png: () => this.save("png"),
      svg: () => this.save("svg"),
      keys: () => help.showModal(),
    };
    for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", act);
    byId("close").addEventListener("click", () => help.close());
    listenToKeys(this.stage.canvas, {
      ...actions,
      used: () => this.choose({ used: !this.state.used || undefined }),
      picture: () => {
        const shown = this.drawings.findIndex(({ name }) => name === this.drawing.name);
        this.choose({ picture: this.drawings[(shown + 1) % this.drawings.length].name, at: undefined });
      },
      search: () => byId("search").focus(),
      zoom: (factor) => this.stage.zoom(factor),
      pan: (x, y) => this.stage.pan(x, y),
      step: (by) => this.step(by),
      take: () => {
        if (this.cursor >= 0) this.choose({ end: this.look.ranking.first[this.cursor] });
      },
    });
    addressed.addEventListener("hashchange", () => this.go(readState(addressed.location.hash, this.model)));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.look = this.makeLook();
      this.show();
    });
  }

  /** Goes on to the next of the link ends by what they carry, or back. */
  private step(by: number): void {
    const { first } = this.look.ranking;
    if (!first.length) return;
    this.cursor =
      (Math.max(this.cursor + by, by < 0 && this.cursor < 0 ? first.length - 1 : 0) + first.length) % first.length;
    const end = first[this.cursor];
    this.stage.reveal(end);
    this.point({ end }, ...this.stage.locateEnd(end));
  }

  private chooseHit({ end, node }: Hit): void {
    if (end !== undefined) this.choose({ end: this.state.end === end ? undefined : end });
    else if (node !== undefined) {
      const host = this.model.nodeHost[node];
      if (host >= 0) this.choose({ hosts: String(this.state.hosts) === String([host]) ? undefined : [host] });
      else this.choose({ node: this.state.node === node ? undefined : node });
    }
  }

  private point(hit: Hit, x: number, y: number): void {
    this.stage.mark(hit.end ?? null);
    this.stage.canvas.style.cursor = hit.end === undefined && hit.node === undefined ? "grab" : "pointer";
    const lines = this.describe(hit);
    if (!lines.length) {
      this.tip.hide();
      return;
    }
    const { width, height } = this.stage.size();
    const off = hit.end === undefined ? undefined : this.stage.placeOfEnd(hit.end);
    this.tip.show(lines, x, y, off ?? [x, y, x, y], width, height);
  }

  private describe({ node, end }: Hit): string[] {
    const { model, names } = this;
    if (node !== undefined) {
      const rails = model.header.rails.length;
      const ranks: string[] = [];
      model.rankNode.forEach((each, index) => {
        if (each === node) ranks.push(names.rank(Math.floor(index / rails)));
      });
      const more = ranks.length > LISTED_RANKS ? ", …" : "";
      return [
        names.node(node),
        `${names.guid(node)}, level ${model.nodeLevel[node]}`,
        ...names.told("node", node),
        ...(ranks.length ? [`ranks ${ranks.slice(0, LISTED_RANKS).join(", ")}${more}`] : []),
      ];
    }
    if (end === undefined) return [];
    const amount = this.amounts.exact(end);
    const share = formatShare(amount, BigInt(model.header.bytes_routed));
    return [
      names.end(end),
      `${formatCount(amount)} bytes (${formatBytes(Number(amount))}), ${share} of all; ${names.leastTime(end, Number(amount))}`,
      ...(amount ? [names.whoIsOn(this.state, end)] : []),
    ];
  }
}

/** The job of each node that has ranks, or sends and receives where ranks are not known; of several the first. */
function findJobs(model: Model, table: LoadTable): Map<number, number> {
  const jobs = new Map<number, number>();
  const { flows } = model;
  if (flows && (!table.hasRankedFlows || model.header.jobs.length > 1)) {
    const meet = (address: number, job: number): void => {
      const node = flows.addressNode[address];
      if (node >= 0 && !jobs.has(node)) jobs.set(node, job);
    };
    for (let flow = 0; flow < flows.count; flow++) {
      meet(flows.source[flow], flows.job[flow]);
      meet(flows.destination[flow], flows.job[flow]);
    }
  }
  for (const node of model.rankNode) if (node >= 0 && !jobs.has(node)) jobs.set(node, 0);
  return jobs;
}

async function start(): Promise<void> {
  const view = new View(await readDocument(byId("data").textContent ?? ""));
  Object.assign(window, { ibprof: view.api });
  document.documentElement.dataset.ready = "true";
  performance.mark("ibprof-shown");
  // What a first look at who is on a link needs, before it is asked for.
  window.setTimeout(() => view.table.prepare());
}

start().catch((error: unknown) => {
  const failure = byId("failure");
  failure.hidden = false;
  failure.textContent = `This file cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
});
