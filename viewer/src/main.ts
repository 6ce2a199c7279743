// SPDX-License-Identifier: Apache-2.0
// The page: one selection, and all that shows it.

import { Scale, THEMES } from "./colours";
import { type Model, readDocument } from "./document";
import { type Amounts, LoadTable, type Selection } from "./loads";
import { type Hit, Network } from "./network";
import { byId, describeEnd, element, leastTime, Names, Panels, rankEnds } from "./panels";
import { formatBytes, formatCount, formatShare, printable } from "./show";
import { addressed, readState, writeState } from "./state";

const ZOOM_STEP = 1.3;
const PAN_STEP = 60;
const WHEEL_SPEED = 0.0015;
const CLICK_SLACK = 4;

class View {
  private readonly table: LoadTable;
  private readonly network: Network;
  private readonly panels: Panels;
  private readonly names: Names;
  private readonly canvas = byId<HTMLCanvasElement>("picture");
  private selection: Selection = {};
  private amounts: Amounts;
  private logarithmic = false;
  /** null: as the system has it. */
  private dark: boolean | null = null;

  constructor(private readonly model: Model) {
    this.table = new LoadTable(model);
    this.names = new Names(model);
    const jobNodes = new Set<number>(model.rankNode as unknown as Iterable<number>);
    this.network = new Network(model, this.canvas, jobNodes, THEMES.light);
    this.panels = new Panels(model, this.table, (part) => this.choose(part));
    this.amounts = this.table.ofEnds({});
    this.showHeads();
    this.listen();
    this.restore();
    this.network.fit();
  }

  /** For tests and scripts: what the page shows, as numbers. */
  readonly api = {
    loads: (): string[][] =>
      Array.from({ length: this.model.links }, (_, link) =>
        [2 * link, 2 * link + 1].map((end) => this.amounts.exact(end).toString()),
      ),
    locateEnd: (end: number): [number, number] => this.network.locateEnd(end),
    locateNode: (node: number): [number, number] => this.network.locate(node),
    redraw: (): void => this.network.redraw(),
  };

  private choose(part: Selection): void {
    this.selection = { ...this.selection, ...part };
    this.update();
    this.note();
  }

  /** Takes over what the address says. */
  private restore(): void {
    const state = readState(addressed.location.hash, this.model);
    this.selection = state.selection;
    this.logarithmic = state.logarithmic;
    this.dark = state.dark;
    this.update();
  }

  private note(): void {
    const { selection, logarithmic, dark } = this;
    addressed.history.replaceState(null, "", writeState({ selection, logarithmic, dark }));
  }

  private get isDark(): boolean {
    return this.dark ?? window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  private update(): void {
    this.amounts = this.table.ofEnds(this.selection);
    const ranked = rankEnds(this.model, this.amounts);
    this.panels.show(this.selection, this.amounts, ranked);
    this.paint(ranked);
    byId<HTMLButtonElement>("clear").disabled = Object.values(this.selection).every((value) => value === undefined);
  }

  private paint(ranked = rankEnds(this.model, this.amounts)): void {
    const theme = THEMES[this.isDark ? "dark" : "light"];
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    const most = ranked.length ? this.amounts.rough(ranked[0]) : 0;
    const least = ranked.length ? this.amounts.rough(ranked[ranked.length - 1]) : 0;
    this.network.show(this.amounts, new Scale(least, most, this.logarithmic), theme, this.selection.end ?? null);
    this.panels.showPairs(this.selection, this.logarithmic, theme);
    byId("scale").setAttribute("aria-pressed", String(this.logarithmic));
    byId("least").textContent = this.logarithmic ? formatBytes(least) : "0 B";
    byId("most").textContent = formatBytes(most);
    const bar = byId<HTMLCanvasElement>("colours").getContext("2d");
    theme.ramp.forEach((colour, step) => {
      if (!bar) return;
      bar.fillStyle = colour;
      bar.fillRect((step * 256) / theme.ramp.length, 0, 256 / theme.ramp.length + 1, 12);
    });
  }

  private showHeads(): void {
    const { header } = this.model;
    const title = printable(header.title);
    byId("title").textContent = title;
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
  }

  private listen(): void {
    byId("fit").addEventListener("click", () => this.network.fit());
    byId("clear").addEventListener("click", () => this.clear());
    byId("scale").addEventListener("click", () => this.toggleScale());
    byId("theme").addEventListener("click", () => this.toggleTheme());
    new ResizeObserver(() => this.network.fit()).observe(this.canvas);
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.network.zoom(Math.exp(-event.deltaY * WHEEL_SPEED), event.offsetX, event.offsetY);
      },
      { passive: false },
    );
    this.listenToPointer();
    addressed.addEventListener("hashchange", () => this.restore());
    window.addEventListener("keydown", (event) => this.press(event));
  }

  private listenToPointer(): void {
    let moved = 0;
    let held = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      [held, moved] = [true, 0];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (held) {
        moved += Math.abs(event.movementX) + Math.abs(event.movementY);
        this.network.pan(event.movementX, event.movementY);
        byId("tip").hidden = true;
      } else this.showTip(event, this.network.find(event.offsetX, event.offsetY));
    });
    this.canvas.addEventListener("pointerup", (event) => {
      held = false;
      if (moved > CLICK_SLACK) return;
      const { end } = this.network.find(event.offsetX, event.offsetY);
      if (end !== undefined) this.choose({ end });
    });
    this.canvas.addEventListener("pointerleave", () => {
      byId("tip").hidden = true;
    });
  }

  private showTip(event: PointerEvent, hit: Hit): void {
    const tip = byId("tip");
    const lines = this.describe(hit);
    tip.hidden = !lines.length;
    if (!lines.length) return;
    tip.replaceChildren(...lines.map((line) => element("p", line)));
    const room = this.canvas.clientWidth - tip.offsetWidth - 8;
    const below = event.offsetY + 16 + tip.offsetHeight < this.canvas.clientHeight;
    tip.style.left = `${Math.max(8, Math.min(event.offsetX + 14, room))}px`;
    tip.style.top = `${Math.max(0, below ? event.offsetY + 16 : event.offsetY - 12 - tip.offsetHeight)}px`;
  }

  private describe(hit: Hit): string[] {
    const { model } = this;
    if (hit.node !== undefined) {
      const guid = `0x${model.nodeGuid[hit.node].toString(16).padStart(16, "0")}`;
      const rails = model.header.rails.length;
      const ranks: string[] = [];
      model.rankNode.forEach((node, index) => {
        if (node === hit.node) ranks.push(this.names.rank(Math.floor(index / rails)));
      });
      return [
        this.names.node(hit.node),
        `${guid}, level ${model.nodeLevel[hit.node]}`,
        ...(ranks.length ? [`ranks ${ranks.slice(0, 12).join(", ")}${ranks.length > 12 ? ", ..." : ""}`] : []),
      ];
    }
    if (hit.end === undefined) return [];
    const amount = this.amounts.exact(hit.end);
    return [
      this.names.end(hit.end),
      `${formatCount(amount)} bytes (${formatBytes(Number(amount))}), ${formatShare(amount, BigInt(model.header.bytes_routed))} of all; ${leastTime(model, hit.end, Number(amount))}`,
      ...(amount ? [describeEnd(model, this.table, this.names, this.selection, hit.end)] : []),
    ];
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const centre = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2] as const;
    const actions: Record<string, () => void> = {
      Escape: () => this.clear(),
      "0": () => this.network.fit(),
      g: () => this.toggleScale(),
      d: () => this.toggleTheme(),
      "+": () => this.network.zoom(ZOOM_STEP, ...centre),
      "-": () => this.network.zoom(1 / ZOOM_STEP, ...centre),
    };
    if (document.activeElement === this.canvas)
      Object.assign(actions, {
        ArrowLeft: () => this.network.pan(PAN_STEP, 0),
        ArrowRight: () => this.network.pan(-PAN_STEP, 0),
        ArrowUp: () => this.network.pan(0, PAN_STEP),
        ArrowDown: () => this.network.pan(0, -PAN_STEP),
      });
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private clear(): void {
    this.selection = {};
    this.update();
    this.note();
  }

  private toggleScale(): void {
    this.logarithmic = !this.logarithmic;
    this.paint();
    this.note();
  }

  private toggleTheme(): void {
    this.dark = !this.isDark;
    this.paint();
    this.note();
  }
}

async function start(): Promise<void> {
  const view = new View(await readDocument(byId("data").textContent ?? ""));
  Object.assign(window, { ibprof: view.api });
  document.documentElement.dataset.ready = "true";
}

start().catch((error: unknown) => {
  const failure = byId("failure");
  failure.hidden = false;
  failure.textContent = `This file cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
});
