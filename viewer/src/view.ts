// SPDX-License-Identifier: Apache-2.0
// The view: one state, and everything that shows it.

import { readState, writeState } from "./address";
import { addressWindow, isEmbedded } from "./address_window";
import type { Amounts } from "./data/amounts";
import { LoadTable } from "./data/load_table";
import type { Model } from "./data/model";
import { printable } from "./format";
import type { Page } from "./page";
import { Tabs } from "./panels/tabs";
import type { Drawing, Hit } from "./pictures/drawing";
import type { Encoding } from "./pictures/encoding";
import { savePng, saveSvg } from "./pictures/export";
import { THEMES } from "./pictures/palette";
import { Panes } from "./pictures/panes";
import { PictureKinds } from "./pictures/picture_kinds";
import type { ComparedRun, Run } from "./run";
import { runIndex } from "./run_pair";
import { type Scene, SceneBuilder, withState } from "./scene";
import { differs, FILTER, HISTORY_PARTS, SELECTION, type State } from "./state";
import { Names } from "./text/names";
import { describePointed } from "./text/tooltip_text";
import { ChangeBox } from "./widgets/change_box";
import { ColourBar } from "./widgets/colour_bar";
import { ComparisonMenus } from "./widgets/comparison_menus";
import { showCoverage, showTitle } from "./widgets/coverage";
import { byId } from "./widgets/dom";
import { FilterChips } from "./widgets/filter_chips";
import { FilterMenus } from "./widgets/filter_menus";
import { showJobLegend } from "./widgets/job_legend";
import { listenToKeyboard } from "./widgets/keyboard";
import { SearchBox } from "./widgets/search_box";
import { SelectionDetails } from "./widgets/selection_details";
import { Tooltip } from "./widgets/tooltip";
import { TopLinks } from "./widgets/top_links";
import { VerdictBox } from "./widgets/verdict_box";

/** Members of the state whose change needs a new scene. */
const SCENE_PARTS: readonly (keyof State)[] = [
  ...SELECTION,
  ...FILTER,
  ...(["run", "against", "compare", "by", "log", "theme", "used", "colour", "value"] as const),
];

export class View implements Page {
  state: State = {};
  readonly runs: readonly Run[];
  readonly panes: Panes;
  private readonly scenes: SceneBuilder;
  private readonly pictures: PictureKinds;
  private readonly tooltip = new Tooltip();
  private readonly verdict: VerdictBox;
  private readonly change: ChangeBox;
  private readonly topLinks: TopLinks;
  private readonly chips: FilterChips;
  private readonly details: SelectionDetails;
  private readonly colourBar: ColourBar;
  private readonly filters: FilterMenus;
  private readonly comparison: ComparisonMenus;
  private tabs: Tabs;
  private scene: Scene;
  /** The position of the keyboard cursor in the ranked link directions; -1 for none. */
  private cursor = -1;

  constructor(models: Model[]) {
    this.runs = models.map((model) => {
      const table = new LoadTable(model);
      return { name: printable(model.header.name), model, table, names: new Names(model, table) };
    });
    this.scenes = new SceneBuilder(this.runs);
    this.pictures = new PictureKinds(this.runs, () => this.compared);
    this.panes = new Panes({
      hover: (pane, hit, x, y) => this.point(pane, hit, x, y),
      choose: (hit) => this.chooseHit(hit),
      settle: () => this.saveViewport(),
    });
    this.state = readState(addressWindow.location.hash, this.model, this.runs.length);
    const { colour } = this.model.header;
    if (!addressWindow.location.hash) this.state.colour = colour;
    for (const id of ["top-links-own", "bar", "log"]) byId(id).hidden = colour !== undefined;
    // A report that embeds the page lists the most loaded links.
    if (isEmbedded && this.runs.length < 2) byId("top-links-own").hidden = true;
    this.verdict = new VerdictBox(this);
    this.change = new ChangeBox(this);
    this.topLinks = new TopLinks(this);
    this.chips = new FilterChips(this);
    this.details = new SelectionDetails(this);
    this.colourBar = new ColourBar(this);
    this.filters = new FilterMenus(this, this.pictures.all);
    this.comparison = new ComparisonMenus(this);
    new SearchBox(this);
    this.tabs = new Tabs(this);
    this.scene = this.buildScene();
    showTitle(this);
    showJobLegend(this);
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

  get compared(): ComparedRun | null {
    return this.scene.compared;
  }

  /** Loads of the page's run. */
  get ownLoads(): Amounts {
    return this.scenes.amountsOf(this.run, this.state);
  }

  /** The encoding of the first picture. */
  get shownEncoding(): Encoding {
    return this.scene.panes[0].encoding;
  }

  get drawing(): Drawing {
    return this.pictures.drawing(this.state);
  }

  choose(part: State, isRepeated = false): void {
    const before = this.state;
    this.goTo({ ...before, ...part });
    this.saveState(!isRepeated && differs(before, this.state, HISTORY_PARTS));
  }

  private get run(): Run {
    return this.runs[runIndex(this.state)];
  }

  /** Show another state. Only results that depend on changed members of the state are recomputed. */
  private goTo(state: State): void {
    const before = this.state;
    this.state = state;
    if (differs(before, state, SELECTION)) {
      this.scenes.forget();
      this.cursor = -1;
    }
    this.scene = differs(before, state, SCENE_PARTS) ? this.buildScene() : withState(this.scene, state);
    if (runIndex(before) !== runIndex(state)) this.tabs = new Tabs(this);
    this.show();
  }

  private buildScene(): Scene {
    return this.scenes.make(this.state, THEMES[this.isDark ? "dark" : "light"]);
  }

  private get isDark(): boolean {
    if (this.state.theme) return this.state.theme === "dark";
    return window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  private show(): void {
    const { listed, panes, compared } = this.scene;
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    byId("log").setAttribute("aria-pressed", String(this.state.log ?? false));
    this.panes.show(this.drawing, panes);
    this.colourBar.show(this.shownEncoding, this.drawing.name);
    this.filters.show(listed, this.drawing);
    this.comparison.show(this.state);
    this.chips.show(listed);
    this.details.show(listed);
    this.verdict.show();
    this.change.show();
    this.topLinks.show(this.shownEncoding, panes[1]?.encoding);
    this.tabs.show(listed);
    showCoverage(this, compared);
    this.tooltip.hide();
  }

  /** Write the state to the page's URL. Add an entry to the browser's history, or replace the last entry. */
  private saveState(isNewEntry = false): void {
    const address = writeState(this.state);
    if (isNewEntry) addressWindow.history.pushState(null, "", address);
    else addressWindow.history.replaceState(null, "", address);
  }

  private saveViewport(): void {
    this.state = { ...this.state, at: this.panes.first.at(), turn: this.drawing.rotation };
    this.scene = withState(this.scene, this.state);
    this.saveState();
  }

  private clear(): void {
    this.choose(Object.fromEntries([...SELECTION, ...FILTER].map((part) => [part, undefined])));
  }

  private export(format: "png" | "svg"): void {
    const { first } = this.panes;
    const { width, height } = first.size();
    const chips = Array.from(byId("chips").children, (chip) => (chip.textContent ?? "").replace(/ ×$/, ""));
    const coverage = Array.from(byId("coverage").children, (note) => note.textContent).join("; ");
    const captions = { title: byId("title").textContent ?? "", filters: chips.join("; ") || "all traffic", coverage };
    const sheet = {
      drawing: this.drawing,
      panes: [...this.panes.all],
      view: first.transform,
      width,
      height,
      captions,
    };
    if (format === "png") savePng(sheet, 2);
    else saveSvg(sheet);
  }

  private listen(): void {
    const help = byId<HTMLDialogElement>("help");
    const actions = {
      fit: () => this.panes.first.fit(),
      clear: () => this.clear(),
      log: () => this.choose({ log: !this.state.log || undefined }),
      theme: () => this.choose({ theme: this.isDark ? "light" : "dark" }),
      png: () => this.export("png"),
      svg: () => this.export("svg"),
      keys: () => help.showModal(),
    };
    for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", act);
    byId("close").addEventListener("click", () => help.close());
    const canvases = this.panes.viewports.map(({ canvas }) => canvas);
    listenToKeyboard(canvases, {
      ...actions,
      fold: () => this.choose({ unfold: !this.state.unfold || undefined, open: undefined, at: undefined }),
      used: () => this.choose({ used: !this.state.used || undefined }),
      picture: () => this.choose({ picture: this.pictures.nameAfter(this.drawing.name), at: undefined }),
      compare: () => this.comparison.next(),
      swap: () => this.comparison.swap(),
      search: () => byId("search").focus(),
      zoom: (factor) => this.panes.first.zoom(factor),
      steer: (x, y, pans) => this.panes.first.steer(x, y, pans),
      step: (by) => this.moveCursor(by),
      selectCursor: () => {
        if (this.cursor >= 0) this.choose({ end: this.shownEncoding.ranking.first[this.cursor] });
      },
    });
    addressWindow.addEventListener("hashchange", () =>
      this.goTo(readState(addressWindow.location.hash, this.model, this.runs.length)),
    );
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.scene = this.buildScene();
      this.show();
    });
  }

  /** Move the cursor in the ranked link directions, and highlight the direction at the cursor. */
  private moveCursor(by: number): void {
    const { first } = this.shownEncoding.ranking;
    if (!first.length) return;
    this.cursor =
      (Math.max(this.cursor + by, by < 0 && this.cursor < 0 ? first.length - 1 : 0) + first.length) % first.length;
    const end = first[this.cursor];
    this.panes.first.reveal(end);
    this.point(0, { end }, ...this.panes.first.locateEnd(end));
  }

  private chooseHit({ end, node, stub }: Hit): void {
    if (stub) this.choose({ open: [...(this.state.open ?? []), stub.group], at: undefined });
    else if (end !== undefined) this.choose({ end: this.state.end === end ? undefined : end });
    else if (node !== undefined) {
      const host = this.model.nodeHost[node];
      if (host >= 0) this.choose({ hosts: String(this.state.hosts) === String([host]) ? undefined : [host] });
      else this.choose({ node: this.state.node === node ? undefined : node });
    }
  }

  private point(pane: number, hit: Hit, x: number, y: number): void {
    this.panes.highlight(hit.end ?? null);
    const viewport = this.panes.viewports[pane];
    viewport.canvas.style.cursor = hit.end === undefined && hit.node === undefined && !hit.stub ? "grab" : "pointer";
    const lines = describePointed(this, this.scene.panes[pane].encoding, hit);
    if (!lines.length) {
      this.tooltip.hide();
      return;
    }
    const avoid = hit.end === undefined ? undefined : viewport.extentOfEnd(hit.end);
    this.tooltip.show(lines, [x, y], avoid ?? [x, y, x, y], viewport.size(), this.panes.offset(pane));
  }
}
