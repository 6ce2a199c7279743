// SPDX-License-Identifier: Apache-2.0
// The panel of the user's attributes of ranks and nodes, and of the problem's grid of ranks.

import { type Attribute, membersOf } from "../data/attributes";
import { formatBytes, formatCount, printable } from "../format";
import type { Page, Panel } from "../page";
import { AttributeColours } from "../pictures/attribute_colours";
import { LoadScale } from "../pictures/colour_scale";
import type { Encoding } from "../pictures/encoding";
import { button, element, replaceChildren, rowOf, scroller, swatch, tableOf } from "../widgets/dom";
import { RankGridCanvas } from "./rank_grid_canvas";

const LISTED = 300;

export class DomainPanel implements Panel {
  readonly name = "domain";
  readonly title = "Domain";
  readonly element = element("section");
  private readonly colours: AttributeColours[];
  private readonly select = element("select");
  private readonly key = element("div");
  private readonly table = scroller("Domain");
  private readonly picture: RankGridCanvas | null;

  constructor(private readonly page: Page) {
    const { model, names } = page;
    this.colours = model.attributes.map((attribute) => new AttributeColours(attribute));
    this.select.id = "colour-by";
    const options = model.attributes.map(({ name, of }, at) => new Option(`${printable(name)} (${of})`, String(at)));
    this.select.replaceChildren(new Option(model.grid ? "bytes sent" : "nothing", ""), ...options);
    this.select.addEventListener("change", () =>
      page.choose({ colour: this.select.value ? Number(this.select.value) : undefined }),
    );
    this.picture = model.grid
      ? new RankGridCanvas(model.grid, {
          choose: (ranks) => {
            const same = String(ranks) === String(page.state.ranks ?? []);
            page.choose({ ranks: ranks.length && !same ? ranks : undefined });
          },
          describe: (rank) =>
            [`rank ${names.rank(rank)} at ${this.positionOf(rank)}`, ...names.attributesOf("rank", rank)].join("; "),
        })
      : null;
    const label = element("label", "Colour by ", this.select);
    this.table.id = "domain-table";
    this.element.append(label, this.key);
    if (model.grid && this.picture) {
      this.element.append(element("p", printable(model.grid.title)), this.picture.element);
    }
    this.element.append(this.table);
  }

  show(encoding: Encoding): void {
    const { colour } = encoding.state;
    this.select.value = colour === undefined ? "" : String(colour);
    const attribute = colour === undefined ? undefined : this.page.model.attributes[colour];
    replaceChildren(this.key, ...(attribute ? this.makeKey(attribute, encoding) : []));
    const { table } = this.page;
    const sent = table.hasRankedFlows
      ? table.sumBy({ ...encoding.state, ranks: undefined }, table.by.sourceRank())
      : null;
    let [least, most] = [Number.POSITIVE_INFINITY, 0];
    for (let rank = 0; sent && rank < sent.length; rank++) {
      const amount = sent.approximate(rank);
      if (amount) [least, most] = [Math.min(least, amount), Math.max(most, amount)];
    }
    const scale = new LoadScale(most ? least : 0, most, encoding.state.log ?? false);
    this.picture?.show(encoding, (rank) => {
      if (attribute?.of === "rank") return this.colours[colour ?? 0].of(rank, encoding.theme);
      const amount = sent?.approximate(rank) ?? 0;
      return amount ? encoding.theme.ramp[scale.step(amount)] : undefined;
    });
    const ranks = this.page.model.grid ? this.page.model.header.rank_names.length : 0;
    const rows = Array.from({ length: Math.min(ranks, LISTED) }, (_, rank) =>
      rowOf(
        button(
          this.page.names.rank(rank),
          () => this.page.choose({ ranks: [rank] }),
          encoding.state.ranks?.includes(rank) ?? false,
        ),
        this.positionOf(rank),
        sent ? formatCount(sent.exact(rank)) : "",
        this.page.names.attributesOf("rank", rank).join("; "),
      ),
    );
    const note = element("p", rows.length < ranks ? `the first ${rows.length} of ${ranks} ranks` : `${ranks} ranks`);
    replaceChildren(
      this.table,
      ...(rows.length ? [note, tableOf(["rank", "position", "bytes sent", "attributes"], rows)] : []),
    );
  }

  private positionOf(rank: number): string {
    const position = this.page.model.grid?.position.subarray(3 * rank, 3 * rank + 3);
    return position && position[0] >= 0 ? `(${Array.from(position).join(", ")})` : "none";
  }

  /** Return the legend of the colours; a click on a class selects it. */
  private makeKey(attribute: Attribute, encoding: Encoding): HTMLElement[] {
    const colours = this.colours[encoding.state.colour ?? 0];
    if (!attribute.classes.length) {
      const { range } = colours;
      if (!range) return [element("p", "no values")];
      const [first, last] = [encoding.theme.values[0], encoding.theme.values[encoding.theme.values.length - 1]];
      return [
        element("p", "", swatch(first), element("span", `${range[0]} `), swatch(last), element("span", `${range[1]}`)),
      ];
    }
    const rows = attribute.classes.map((name, which) => {
      const members = membersOf(attribute, which);
      const choice = this.membersToSelect(attribute, members);
      const colour = encoding.theme.jobs[which % encoding.theme.jobs.length];
      const part = attribute.of === "rank" ? "ranks" : "hosts";
      const chosen = String(encoding.state[part] ?? []) === String(choice) && choice.length > 0;
      const press = button(printable(name), () => this.page.choose({ [part]: chosen ? undefined : choice }), chosen);
      press.disabled = !choice.length;
      press.title = choice.length ? "Show the traffic of this class only" : "no member has traffic";
      return rowOf(
        element("span", "", swatch(colour), press),
        String(members.length),
        this.sentBy(attribute, choice, encoding),
      );
    });
    return [tableOf([attribute.of === "rank" ? "class of ranks" : "class of nodes", "members", "bytes sent"], rows)];
  }

  /** Return the ranks of a class, or the hosts of a class of nodes. */
  private membersToSelect(attribute: Attribute, members: number[]): number[] {
    if (attribute.of === "rank") return members;
    const hosts = new Set(members.map((node) => this.page.model.nodeHost[node]).filter((host) => host >= 0));
    return [...hosts].sort((one, other) => one - other);
  }

  private sentBy(attribute: Attribute, which: number[], { state }: Encoding): string {
    const { table } = this.page;
    if (!table.hasFlows) return "";
    const key = attribute.of === "rank" ? table.by.sourceRank() : table.by.sourceHost();
    const sums = table.sumBy({ ...state, ranks: undefined, hosts: undefined }, key);
    const sum = which.reduce((total, each) => total + sums.exact(each), 0n);
    return formatBytes(Number(sum));
  }
}
