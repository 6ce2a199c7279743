// SPDX-License-Identifier: Apache-2.0
// The user's own view of the job: what was told of ranks and nodes, and the grid that the problem lays the ranks out on.

import { type Attribute, membersOf } from "../data/attributes";
import { button, element, replaceChildren, rowOf, scroller, tableOf } from "../dom";
import type { Page, Panel } from "../page";
import { AttributeColours } from "../pictures/attribute_colours";
import { LoadScale } from "../pictures/colours";
import type { Look } from "../pictures/look";
import { formatBytes, formatCount, printable } from "../show";
import { RankGridPicture } from "./rank_grid";

const LISTED = 300;

export class Domain implements Panel {
  readonly name = "domain";
  readonly title = "Domain";
  readonly element = element("section");
  private readonly colours: AttributeColours[];
  private readonly select = element("select");
  private readonly key = element("div");
  private readonly table = scroller("Domain");
  private readonly picture: RankGridPicture | null;

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
      ? new RankGridPicture(model.grid, {
          choose: (ranks) => {
            const same = String(ranks) === String(page.state.ranks ?? []);
            page.choose({ ranks: ranks.length && !same ? ranks : undefined });
          },
          describe: (rank) =>
            [`rank ${names.rank(rank)} at ${this.placeOf(rank)}`, ...names.told("rank", rank)].join("; "),
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

  show(look: Look): void {
    const { colour } = look.state;
    this.select.value = colour === undefined ? "" : String(colour);
    const attribute = colour === undefined ? undefined : this.page.model.attributes[colour];
    replaceChildren(this.key, ...(attribute ? this.makeKey(attribute, look) : []));
    const { table } = this.page;
    const sent = table.hasRankedFlows ? table.sumBy({ ...look.state, ranks: undefined }, table.by.sourceRank()) : null;
    let [least, most] = [Number.POSITIVE_INFINITY, 0];
    for (let rank = 0; sent && rank < sent.length; rank++) {
      const amount = sent.rough(rank);
      if (amount) [least, most] = [Math.min(least, amount), Math.max(most, amount)];
    }
    const scale = new LoadScale(most ? least : 0, most, look.state.log ?? false);
    this.picture?.show(look, (rank) => {
      if (attribute?.of === "rank") return this.colours[colour ?? 0].of(rank, look.theme);
      const amount = sent?.rough(rank) ?? 0;
      return amount ? look.theme.ramp[scale.step(amount)] : undefined;
    });
    const ranks = this.page.model.grid ? this.page.model.header.rank_names.length : 0;
    const rows = Array.from({ length: Math.min(ranks, LISTED) }, (_, rank) =>
      rowOf(
        button(
          this.page.names.rank(rank),
          () => this.page.choose({ ranks: [rank] }),
          look.state.ranks?.includes(rank) ?? false,
        ),
        this.placeOf(rank),
        sent ? formatCount(sent.exact(rank)) : "",
        this.page.names.told("rank", rank).join("; "),
      ),
    );
    const note = element("p", rows.length < ranks ? `the first ${rows.length} of ${ranks} ranks` : `${ranks} ranks`);
    replaceChildren(this.table, ...(rows.length ? [note, tableOf(["rank", "place", "bytes sent", "told"], rows)] : []));
  }

  private placeOf(rank: number): string {
    const place = this.page.model.grid?.place.subarray(3 * rank, 3 * rank + 3);
    return place && place[0] >= 0 ? `(${Array.from(place).join(", ")})` : "none";
  }

  /** What the colours stand for; a class is chosen by its name. */
  private makeKey(attribute: Attribute, look: Look): HTMLElement[] {
    const colours = this.colours[look.state.colour ?? 0];
    const swatch = (colour: string): HTMLElement => {
      // A canvas: the page's policy allows no style of an element's own.
      const made = element("canvas");
      made.className = "swatch";
      [made.width, made.height] = [12, 12];
      const context = made.getContext("2d");
      if (context) {
        context.fillStyle = colour;
        context.fillRect(0, 0, 12, 12);
      }
      return made;
    };
    if (!attribute.classes.length) {
      const { range } = colours;
      if (!range) return [element("p", "no value is told")];
      const [first, last] = [look.theme.values[0], look.theme.values[look.theme.values.length - 1]];
      return [
        element("p", "", swatch(first), element("span", `${range[0]} `), swatch(last), element("span", `${range[1]}`)),
      ];
    }
    const rows = attribute.classes.map((name, which) => {
      const members = membersOf(attribute, which);
      const choice = this.choiceOf(attribute, members);
      const colour = look.theme.jobs[which % look.theme.jobs.length];
      const part = attribute.of === "rank" ? "ranks" : "hosts";
      const chosen = String(look.state[part] ?? []) === String(choice) && choice.length > 0;
      const press = button(printable(name), () => this.page.choose({ [part]: chosen ? undefined : choice }), chosen);
      press.disabled = !choice.length;
      press.title = choice.length ? "only what these send and receive" : "none of them sends";
      return rowOf(
        element("span", "", swatch(colour), press),
        String(members.length),
        this.sentBy(attribute, choice, look),
      );
    });
    return [tableOf([attribute.of === "rank" ? "class of ranks" : "class of nodes", "of it", "bytes sent"], rows)];
  }

  /** The ranks, or of nodes the hosts, that a choice of a class is. */
  private choiceOf(attribute: Attribute, members: number[]): number[] {
    if (attribute.of === "rank") return members;
    const hosts = new Set(members.map((node) => this.page.model.nodeHost[node]).filter((host) => host >= 0));
    return [...hosts].sort((one, other) => one - other);
  }

  private sentBy(attribute: Attribute, which: number[], { state }: Look): string {
    const { table } = this.page;
    if (!table.hasFlows) return "";
    const key = attribute.of === "rank" ? table.by.sourceRank() : table.by.sourceHost();
    const sums = table.sumBy({ ...state, ranks: undefined, hosts: undefined }, key);
    const sum = which.reduce((total, each) => total + sums.exact(each), 0n);
    return formatBytes(Number(sum));
  }
}
