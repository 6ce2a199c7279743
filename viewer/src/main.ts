// SPDX-License-Identifier: Apache-2.0
// The page: one state, and all that shows it.

import { Chosen } from "./chosen";
import { ColourBar } from "./colour_bar";
import { Comparing, runOf } from "./comparing";
import type { Amounts } from "./data/amounts";
import { type Model, readDocument } from "./data/document";
import { LoadTable } from "./data/loads";
import { byId } from "./dom";
import { Filters } from "./filters";
import { showCoverage, showJobs, showTitle } from "./heads";
import { Hot } from "./hot";
import { findJobs } from "./jobs";
import { listenToKeys } from "./keys";
import { Names } from "./names";
import type { Compared, Page, Run } from "./page";
import { Tabs } from "./panels/all";
import { NodeColours } from "./pictures/attribute_colours";
import { Cells } from "./pictures/cells";
import { THEMES } from "./pictures/colours";
import type { Drawing, Hit } from "./pictures/drawing";
import { Lines } from "./pictures/lines";
import type { Look } from "./pictures/look";
import { Panes } from "./pictures/panes";
import { savePng, saveSvg } from "./pictures/save";
import { Space } from "./pictures/space";
import { describeHit } from "./pointed";
import { Search } from "./search";
import { printable } from "./show";
import { keepSight, type Sight, Sights } from "./sight";
import { addressed, differ, FILTER, readState, SELECTION, type State, writeState } from "./state";
import { Tip } from "./tip";

/** Beyond so many links lines hide one another. */
const CROWDED = 10000;

/** A picture, made when it is first shown: of a large fabric that takes a while. */
interface DrawingKind {
  name: string;
  title: string;
  make(): Drawing;
  made?: Drawing;
}

class View implements Page {
  state: State = {};
  readonly runs: readonly Run[];
  private readonly sights: Sights;
  private readonly panes: Panes;
  private readonly tip = new Tip();
  private readonly drawings: DrawingKind[];
  private readonly hot: Hot;
  private readonly chosen: Chosen;
  private readonly bar: ColourBar;
  private readonly filters: Filters;
  private readonly comparing: Comparing;
  private tabs: Tabs;
  private sight: Sight;
  /** Of the ranked link ends, the one that keys have gone to. */
  private cursor = -1;

  constructor(models: Model[]) {
    this.runs = models.map((model) => {
      const table = new LoadTable(model);
      return { name: printable(model.header.name), model, table, names: new Names(model, table) };
    });
    this.sights = new Sights(this.runs);
    this.drawings = this.makeDrawings();
    this.panes = new Panes({
      hover: (pane, hit, x, y) => this.point(pane, hit, x, y),
      choose: (hit) => this.chooseHit(hit),
      settle: () => this.noteView(),
    });
    this.state = readState(addressed.location.hash, this.model, this.runs.length);
    this.hot = new Hot(this);
    this.chosen = new Chosen(this);
    this.bar = new ColourBar(this);
    this.filters = new Filters(this, this.drawings);
    this.comparing = new Comparing(this);
    new Search(this);
    this.tabs = new Tabs(this);
    this.sight = this.look();
    showTitle(this);
    showJobs(this);
    this.listen();
    this.show();
  }

  get name(): string {
    return this.run.name;
  }

  get model(): Model {
    return this.run.model;
  }

  get table(): LoadTable {
    return this.run.table;
  }

  get names(): Names {
    return this.run.names;
  }

  get compared(): Compared | null {
    return this.sight.compared;
  }

  private get run(): Run {
    return this.runs[runOf(this.state)];
  }

  /** For tests and scripts: what the page shows, as numbers. */
  readonly api = {
    loads: (): string[][] => this.list(this.sights.amountsOf(this.run, this.state)),
    /** The same of the run that is compared with. */
    loadsBeside: (): string[][] => (this.compared ? this.list(this.compared.after) : []),
    /** What is drawn: loads, or differences. */
    turned: (): number[] | undefined => this.drawing.turned,
    /** Link ends in the order of the table of links. */
    ranked: (): number[] => this.shownLook.ranking.first,
    drawn: (): string[][] => this.list(this.shownLook.amounts),
    /** Link ends that are drawn with a colour. */
    lit: (): number[] => {
      const { steps } = this.shownLook;
      return Array.from(steps.keys()).filter((end) => steps[end] > 0 && steps[end] < 255);
    },
    ways: (): number[] => this.shownLook.ways,
    locateEnd: (end: number, pane = 0): [number, number] => this.panes.stages[pane].locateEnd(end),
    placeOfEnd: (end: number): [number, number, number, number] => this.panes.first.placeOfEnd(end),
    locateNode: (node: number): [number, number] | undefined => this.panes.first.locateNode(node),
    find: (x: number, y: number): Hit => this.panes.first.find(x, y),
    redraw: (): void => this.panes.first.redraw(),
    pan: (x: number, y: number): void => this.panes.first.pan(x, y),
    turn: (x: number, y: number): void => this.panes.first.steer(x, y, false),
    choose: (part: State): void => this.choose(part),
  };

  choose(part: State): void {
    this.go({ ...this.state, ...part });
    this.note();
  }

  private makeDrawings(): DrawingKind[] {
    // Pictures are of the fabric, which all runs share; where ranks and jobs are differs by run.
    const [{ model }] = this.runs;
    const told = new Map(this.runs.map((run) => [run, new NodeColours(run.model)]));
    const jobs = new Map(this.runs.map((run) => [run, findJobs(run)]));
    const several = model.header.jobs.length > 1;
    const colourOf = (node: number, { state, theme, run, isChange }: Look): string | null => {
      if (state.colour !== undefined) return told.get(run)?.of(state.colour, node, theme) ?? null;
      const beside = isChange && this.compared ? jobs.get(this.compared.run) : undefined;
      const job = jobs.get(run)?.get(node) ?? beside?.get(node);
      if (job === undefined) return null;
      return several ? theme.jobs[job % theme.jobs.length] : theme.job;
    };
    const flat = [
      { name: "lines", title: "Network", make: () => new Lines(model, colourOf) },
      { name: "cells", title: "Cells", make: () => new Cells(model) },
    ];
    const space = { name: "space", title: "In space", make: () => new Space(model, colourOf) };
    // What was inferred from delays has no other places than those.
    return model.space ? [...(model.header.about === undefined ? flat : []), space] : flat;
  }

  private list(amounts: Amounts): string[][] {
    return Array.from({ length: this.model.links }, (_, link) =>
      [2 * link, 2 * link + 1].map((end) => amounts.exact(end).toString()),
    );
  }

  /** Goes to another state; only what it changes is computed anew. */
  private go(state: State): void {
    const before = this.state;
    this.state = state;
    if (differ(before, state, SELECTION)) {
      this.sights.forget();
      this.cursor = -1;
    }
    const pair = ["run", "against", "compare", "by"] as const;
    const other = differ(before, state, [...SELECTION, ...FILTER, ...pair, "log", "theme", "used", "colour", "value"]);
    this.sight = other ? this.look() : keepSight(this.sight, state);
    if (runOf(before) !== runOf(state)) this.tabs = new Tabs(this);
    this.show();
  }

  private look(): Sight {
    return this.sights.make(this.state, THEMES[this.isDark ? "dark" : "light"]);
  }

  /** Of the first picture. */
  private get shownLook(): Look {
    return this.sight.shown[0].look;
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
    const { listed, shown, compared } = this.sight;
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    byId("log").setAttribute("aria-pressed", String(this.state.log ?? false));
    this.panes.show(this.drawing, shown);
    this.bar.show(this.shownLook);
    this.filters.show(listed, this.drawing);
    this.comparing.show(this.state);
    this.chosen.show(listed);
    this.hot.show(this.shownLook);
    this.tabs.show(listed);
    showCoverage(this, compared);
    this.tip.hide();
  }

  private note(): void {
    addressed.history.replaceState(null, "", writeState(this.state));
  }

  private noteView(): void {
    this.state = { ...this.state, at: this.panes.first.at(), turn: this.drawing.turned };
    this.sight = keepSight(this.sight, this.state);
    this.note();
  }

  private clear(): void {
    this.choose(Object.fromEntries([...SELECTION, ...FILTER].map((part) => [part, undefined])));
  }

  private save(kind: "png" | "svg"): void {
    const { first } = this.panes;
    const { width, height } = first.size();
    const chips = Array.from(byId("chips").children, (chip) => (chip.textContent ?? "").replace(/ ×$/, ""));
    const coverage = Array.from(byId("coverage").children, (note) => note.textContent).join("; ");
    const captions = { title: byId("title").textContent ?? "", choice: chips.join("; ") || "all traffic", coverage };
    const panes = [...this.panes.all];
    const sheet = { drawing: this.drawing, panes, view: first.transform, width, height, captions };
    if (kind === "png") savePng(sheet, 2);
    else saveSvg(sheet);
  }

  private listen(): void {
    const help = byId<HTMLDialogElement>("help");
    const actions = {
      fit: () => this.panes.first.fit(),
      clear: () => this.clear(),
      log: () => this.choose({ log: !this.state.log || undefined }),
      theme: () => this.choose({ theme: this.isDark ? "light" : "dark" }),
      png: () => this.save("png"),
      svg: () => this.save("svg"),
      keys: () => help.showModal(),
    };
    for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", act);
    byId("close").addEventListener("click", () => help.close());
    const canvases = this.panes.stages.map(({ canvas }) => canvas);
    listenToKeys(canvases, {
      ...actions,
      used: () => this.choose({ used: !this.state.used || undefined }),
      picture: () => {
        const shown = this.drawings.findIndex(({ name }) => name === this.drawing.name);
        this.choose({ picture: this.drawings[(shown + 1) % this.drawings.length].name, at: undefined });
      },
      compare: () => this.comparing.next(),
      swap: () => this.comparing.swap(),
      search: () => byId("search").focus(),
      zoom: (factor) => this.panes.first.zoom(factor),
      steer: (x, y, moves) => this.panes.first.steer(x, y, moves),
      step: (by) => this.step(by),
      take: () => {
        if (this.cursor >= 0) this.choose({ end: this.shownLook.ranking.first[this.cursor] });
      },
    });
    addressed.addEventListener("hashchange", () =>
      this.go(readState(addressed.location.hash, this.model, this.runs.length)),
    );
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.sight = this.look();
      this.show();
    });
  }

  /** Goes on to the next of the link ends by what they carry, or back. */
  private step(by: number): void {
    const { first } = this.shownLook.ranking;
    if (!first.length) return;
    this.cursor =
      (Math.max(this.cursor + by, by < 0 && this.cursor < 0 ? first.length - 1 : 0) + first.length) % first.length;
    const end = first[this.cursor];
    this.panes.first.reveal(end);
    this.point(0, { end }, ...this.panes.first.locateEnd(end));
  }

  private chooseHit({ end, node }: Hit): void {
    if (end !== undefined) this.choose({ end: this.state.end === end ? undefined : end });
    else if (node !== undefined) {
      const host = this.model.nodeHost[node];
      if (host >= 0) this.choose({ hosts: String(this.state.hosts) === String([host]) ? undefined : [host] });
      else this.choose({ node: this.state.node === node ? undefined : node });
    }
  }

  private point(pane: number, hit: Hit, x: number, y: number): void {
    this.panes.mark(hit.end ?? null);
    const stage = this.panes.stages[pane];
    stage.canvas.style.cursor = hit.end === undefined && hit.node === undefined ? "grab" : "pointer";
    const lines = describeHit(this, this.sight.shown[pane].look, hit);
    if (!lines.length) {
      this.tip.hide();
      return;
    }
    const { width, height } = stage.size();
    const off = hit.end === undefined ? undefined : stage.placeOfEnd(hit.end);
    this.tip.show(lines, x, y, off ?? [x, y, x, y], width, height, this.panes.offset(pane));
  }
}

async function start(): Promise<void> {
  const view = new View(await readDocument(byId("data").textContent ?? ""));
  Object.assign(window, { ibprof: view.api });
  document.documentElement.dataset.ready = "true";
  performance.mark("ibprof-shown");
  // What a first look at who is on a link needs, before it is asked for.
  window.setTimeout(() => {
    for (const { table } of view.runs) table.prepare();
  });
}

start().catch((error: unknown) => {
  const failure = byId("failure");
  failure.hidden = false;
  failure.textContent = `This file cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
});
