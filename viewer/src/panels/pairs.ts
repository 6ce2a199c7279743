// SPDX-License-Identifier: Apache-2.0
// The panel of pairs of sender and receiver: a matrix of ranks or hosts, and a table of the largest pairs.

import type { FlowKey } from "../data/flow_keys";
import type { Pairs } from "../data/pairs";
import { rankLargest } from "../data/ranking";
import { formatBytes } from "../format";
import type { Page, Panel } from "../page";
import type { Encoding } from "../pictures/encoding";
import type { Selection } from "../state";
import { button, element, replaceChildren, scroller, shareRow, tableOf } from "../widgets/dom";
import { PairMatrix } from "./pair_matrix";

const LISTED = 100;

interface PairKind {
  title: string;
  source: "source" | "from";
  destination: "destination" | "to";
  pairs(): Pairs | null;
  key(): FlowKey;
  name(one: number): string;
  grid: PairMatrix;
}

export class PairsPanel implements Panel {
  readonly name = "pairs";
  readonly title = "Pairs";
  readonly element = element("section");
  private readonly kinds: PairKind[];
  private readonly grids = element("div");
  private readonly table = scroller("Pairs");
  private kind: PairKind;
  private encoding: Encoding | null = null;

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
        if (this.encoding) this.show(this.encoding);
      }),
    );
    for (const [at, each] of buttons.entries()) each.setAttribute("aria-pressed", String(!at));
    choices.append(...buttons);
    this.table.id = "pairs";
    this.element.append(choices, this.grids, this.table);
  }

  show(encoding: Encoding): void {
    this.encoding = encoding;
    const { kind } = this;
    const { table } = this.page;
    const pairs = kind.pairs();
    if (!pairs) return;
    const selection: Selection = { ...encoding.state, [kind.source]: undefined, [kind.destination]: undefined };
    const sums = table.sumBy(selection, kind.key());
    const [source, destination] = [encoding.state[kind.source], encoding.state[kind.destination]];
    const isChosen = (pair: number): boolean =>
      source !== undefined && pairs.source[pair] === source && pairs.destination[pair] === destination;
    if (this.grids.firstChild !== kind.grid.element) this.grids.replaceChildren(kind.grid.element);
    kind.grid.show(encoding, pairs, (pair) => sums.approximate(pair), isChosen);
    const { first, used } = rankLargest(sums, LISTED, pairs.compare);
    const total = sums.total();
    const rows = first.map((pair) => {
      const press = (): void => this.choose(kind, pairs, pair, isChosen(pair));
      return shareRow(button(nameOf(kind, pairs, pair), press, isChosen(pair)), sums.exact(pair), total);
    });
    const note = element("p", `${rows.length} of ${used} pairs that load links`);
    replaceChildren(this.table, note, tableOf(["pair", "bytes", "share"], rows));
  }

  private makeKind(part: "ranks" | "hosts", name: (one: number) => string): PairKind {
    const { model, table } = this.page;
    const ranks = part === "ranks";
    const kind: PairKind = {
      title: ranks ? "Ranks" : "Hosts",
      source: ranks ? "source" : "from",
      destination: ranks ? "destination" : "to",
      pairs: () => (ranks ? table.by.rankPairs : table.by.hostPairs),
      key: () => (ranks ? table.by.rankPair() : table.by.hostPair()),
      name,
      grid: new PairMatrix(
        ranks ? model.header.rank_names.length : model.header.host_names.length,
        `Bytes between ${ranks ? "ranks" : "hosts"}: senders from top to bottom, receivers from left to right`,
        {
          choose: (pair) => {
            const pairs = kind.pairs();
            if (pairs) this.choose(kind, pairs, pair, false);
          },
          describe: (pair, bytes, count) => {
            const pairs = kind.pairs();
            const name = pairs ? nameOf(kind, pairs, pair) : "";
            return count > 1
              ? `${count} pairs, ${formatBytes(bytes)}; largest: ${name}`
              : `${name}: ${formatBytes(bytes)}`;
          },
        },
      ),
    };
    kind.grid.canvas.id = `matrix-${part}`;
    return kind;
  }

  private choose(kind: PairKind, pairs: Pairs, pair: number, chosen: boolean): void {
    this.page.choose({
      [kind.source]: chosen ? undefined : pairs.source[pair],
      [kind.destination]: chosen ? undefined : pairs.destination[pair],
    });
  }
}

function nameOf(kind: PairKind, pairs: Pairs, pair: number): string {
  return `${kind.name(pairs.source[pair])} to ${kind.name(pairs.destination[pair])}`;
}
