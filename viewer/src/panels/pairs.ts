// SPDX-License-Identifier: Apache-2.0
// Who sends to whom: matrices of ranks and of hosts, and the greatest pairs in a table.

import { rank } from "../data/amounts";
import type { Key } from "../data/loads";
import type { Pairs } from "../data/pairs";
import { button, element, replaceChildren, scroller, shareRow, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import type { Look } from "../pictures/look";
import { formatBytes } from "../show";
import type { Selection } from "../state";
import { Grid } from "./grid";

const LISTED = 100;

/** A kind of pairs: of ranks, of hosts. */
interface Kind {
  title: string;
  source: "source" | "from";
  destination: "destination" | "to";
  pairs(): Pairs | null;
  key(): Key;
  name(one: number): string;
  grid: Grid;
}

export class PairsPanel implements Panel {
  readonly name = "pairs";
  readonly title = "Pairs";
  readonly element = element("section");
  private readonly kinds: Kind[];
  private readonly grids = element("div");
  private readonly table = scroller("Pairs");
  private kind: Kind;
  private look: Look | null = null;

  constructor(private readonly page: Page) {
    const { table, names } = page;
    this.kinds = [
      ...(table.hasRankedFlows ? [this.makeKind("ranks", (rank) => `rank ${names.rank(rank)}`)] : []),
      this.makeKind("hosts", (host) => names.host(host)),
    ];
    this.kind = this.kinds[0];
    const choices = element("div");
    choices.className = "choices";
    choices.setAttribute("role", "group");
    choices.setAttribute("aria-label", "Pairs of");
    const buttons = this.kinds.map((kind) =>
      button(kind.title, () => {
        this.kind = kind;
        for (const [at, each] of buttons.entries()) each.setAttribute("aria-pressed", String(this.kinds[at] === kind));
        if (this.look) this.show(this.look);
      }),
    );
    for (const [at, each] of buttons.entries()) each.setAttribute("aria-pressed", String(!at));
    choices.append(...buttons);
    this.table.id = "pairs";
    this.element.append(choices, this.grids, this.table);
  }

  show(look: Look): void {
    this.look = look;
    const { kind } = this;
    const { table } = this.page;
    const pairs = kind.pairs();
    if (!pairs) return;
    const selection: Selection = { ...look.state, [kind.source]: undefined, [kind.destination]: undefined };
    const sums = table.sumBy(selection, kind.key());
    const [source, destination] = [look.state[kind.source], look.state[kind.destination]];
    const isChosen = (pair: number): boolean =>
      source !== undefined && pairs.source[pair] === source && pairs.destination[pair] === destination;
    if (this.grids.firstChild !== kind.grid.element) this.grids.replaceChildren(kind.grid.element);
    kind.grid.show(look, pairs, (pair) => sums.rough(pair), isChosen);
    const { first, used } = rank(sums, LISTED);
    const total = sums.total();
    const rows = first.map((pair) => {
      const press = (): void => this.choose(kind, pairs, pair, isChosen(pair));
      return shareRow(button(nameOf(kind, pairs, pair), press, isChosen(pair)), sums.exact(pair), total);
    });
    const note = element("p", `${rows.length} of ${used} pairs that load links`);
    replaceChildren(this.table, note, tableOf(["pair", "bytes", "share"], rows));
  }

  private makeKind(part: "ranks" | "hosts", name: (one: number) => string): Kind {
    const { model, table } = this.page;
    const ranks = part === "ranks";
    const kind: Kind = {
      title: ranks ? "Ranks" : "Hosts",
      source: ranks ? "source" : "from",
      destination: ranks ? "destination" : "to",
      pairs: () => (ranks ? table.rankPairs : table.hostPairs),
      key: () => (ranks ? table.by.rankPair() : table.by.hostPair()),
      name,
      grid: new Grid(
        ranks ? model.header.rank_names.length : model.header.host_names.length,
        `${ranks ? "Ranks" : "Hosts"} that send from top to bottom, those that receive from left to right`,
        {
          choose: (pair) => {
            const pairs = kind.pairs();
            if (pairs) this.choose(kind, pairs, pair, false);
          },
          describe: (pair, bytes, count) => {
            const pairs = kind.pairs();
            const name = pairs ? nameOf(kind, pairs, pair) : "";
            return count > 1
              ? `${count} pairs, ${formatBytes(bytes)}; most: ${name}`
              : `${name}: ${formatBytes(bytes)}`;
          },
        },
      ),
    };
    kind.grid.canvas.id = `matrix-${part}`;
    return kind;
  }

  private choose(kind: Kind, pairs: Pairs, pair: number, chosen: boolean): void {
    this.page.choose({
      [kind.source]: chosen ? undefined : pairs.source[pair],
      [kind.destination]: chosen ? undefined : pairs.destination[pair],
    });
  }
}

function nameOf(kind: Kind, pairs: Pairs, pair: number): string {
  return `${kind.name(pairs.source[pair])} to ${kind.name(pairs.destination[pair])}`;
}
