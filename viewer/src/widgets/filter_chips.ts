// SPDX-License-Identifier: Apache-2.0
// The active filters as chips; a click on a chip removes its filter.

import { printable } from "../format";
import type { Page } from "../page";
import { type Encoding, formatAmount } from "../pictures/encoding";
import type { State } from "../state";
import type { Names } from "../text/names";
import { button, byId } from "./dom";

const NAMED = 3;

/** A text on a filter, and the change of the state that removes the filter. */
type FilterChip = [text: string, removal: State];

export class FilterChips {
  constructor(private readonly page: Page) {}

  show(encoding: Encoding): void {
    const chips = describeFilters(encoding, this.page.names).map(([text, removal]) => {
      const chip = button(`${text} ×`, () => this.page.choose(removal));
      chip.title = "Remove this filter";
      chip.setAttribute("aria-label", `${text}: remove this filter`);
      return chip;
    });
    byId("chips").replaceChildren(...chips);
    byId("chips").hidden = !chips.length;
    byId<HTMLButtonElement>("clear").disabled = !chips.length;
  }
}

/** Return every active filter. */
export function describeFilters(encoding: Encoding, names: Names): FilterChip[] {
  const { state } = encoding;
  return [...describeEndpoints(state, names), ...describeCategories(state, names), ...describeRanges(encoding, names)];
}

function describeEndpoints({ ranks, hosts, source, destination, from, to }: State, names: Names): FilterChip[] {
  const chips: FilterChip[] = [];
  const rankName = (rank: number): string => names.rank(rank);
  const hostName = (host: number): string => names.host(host);
  const nameOrAny = (name: (index: number) => string, index: number | undefined): string =>
    index === undefined ? "any" : name(index);
  if (ranks) chips.push([listNames("rank", ranks.map(rankName)), { ranks: undefined }]);
  if (hosts) chips.push([listNames("host", hosts.map(hostName)), { hosts: undefined }]);
  if (source !== undefined || destination !== undefined) {
    const text = `rank ${nameOrAny(rankName, source)} to ${nameOrAny(rankName, destination)}`;
    chips.push([text, { source: undefined, destination: undefined }]);
  }
  if (from !== undefined || to !== undefined) {
    const text = `host ${nameOrAny(hostName, from)} to ${nameOrAny(hostName, to)}`;
    chips.push([text, { from: undefined, to: undefined }]);
  }
  return chips;
}

function listNames(noun: string, names: string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  return `${noun}${names.length > 1 ? "s" : ""} ${names.slice(0, NAMED).join(", ")}${more}`;
}

function describeCategories({ region, operation, job, site }: State, names: Names): FilterChip[] {
  const chips: FilterChip[] = [];
  if (region !== undefined) chips.push([`region ${names.region(region)}`, { region: undefined }]);
  if (operation !== undefined) chips.push([names.operation(operation), { operation: undefined }]);
  if (site !== undefined) chips.push([names.site(site), { site: undefined }]);
  if (job !== undefined) chips.push([`job ${names.job(job)}`, { job: undefined }]);
  return chips;
}

/** Return the filters by rail, level, time and amount. */
function describeRanges(encoding: Encoding, names: Names): FilterChip[] {
  const { state, value, measure } = encoding;
  const { end, node, time, rail, level, load, change } = state;
  const chips: FilterChip[] = [];
  if (end !== undefined) chips.push([`on ${names.end(end)}`, { end: undefined }]);
  if (node !== undefined) chips.push([`through ${names.node(node)}`, { node: undefined }]);
  if (time) chips.push([`${names.moment(time[0])} to ${names.moment(time[1])}`, { time: undefined }]);
  if (rail !== undefined) chips.push([`rail ${names.rail(rail)}`, { rail: undefined }]);
  if (level !== undefined) chips.push([`links up to level ${level}`, { level: undefined }]);
  if (load) {
    const [least, most] = load.map((amount) => formatAmount(encoding, amount));
    chips.push([`${value ? printable(value.name) : "load"} of ${least} to ${most}`, { load: undefined }]);
  }
  if (change) {
    const [least, most] = change.map((amount) => measure.formatChange(amount));
    chips.push([`change of ${least} to ${most}`, { change: undefined }]);
  }
  return chips;
}
