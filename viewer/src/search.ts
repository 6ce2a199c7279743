// SPDX-License-Identifier: Apache-2.0
// Search for hosts, switches, GUIDs, LIDs and ranks.

import { SWITCH } from "./data/model";
import type { Run } from "./run";
import type { State } from "./state";
import { railLetter } from "./text/names";

const MOST_RESULTS = 12;

export interface SearchResult {
  text: string;
  /** The change of the state that selects it. */
  part: State;
}

/** Return the matches of a query such as `rank 7`, `lid 0x1f`, `0x0002c903...` or part of a name; the most exact first. */
export function search(run: Run, query: string): SearchResult[] {
  const [, kind = "", rest = ""] = /^(?:(rank|lid|host|guid)\s+)?(.*)$/i.exec(query) ?? [];
  const kinds = kind.toLowerCase();
  const found: SearchResult[] = [];
  if (!kinds || kinds === "rank") found.push(...findRank(run, rest));
  if (!kinds || kinds === "lid") found.push(...findLid(run, rest));
  if (!kinds || kinds === "guid") found.push(...findGuid(run, rest));
  if (!kinds || kinds === "host") found.push(...findNames(run, rest, kinds === "host"));
  return found.slice(0, MOST_RESULTS);
}

/** Find a rank by its number; in several jobs the one of each. */
function findRank({ model, names }: Run, text: string): SearchResult[] {
  return model.header.rank_names.flatMap((name, rank) => {
    if (name !== text && !name.endsWith(`:${text}`)) return [];
    return [{ text: `rank ${names.rank(rank)} on ${names.node(names.nodeOfRank(rank))}`, part: { ranks: [rank] } }];
  });
}

function findLid(run: Run, text: string): SearchResult[] {
  const { model } = run;
  if (!/^(\d+|0x[0-9a-f]{1,4})$/i.test(text)) return [];
  const lid = Number(text);
  const found: SearchResult[] = [];
  for (let port = 0; port < model.lidFirst.length; port++) {
    const first = model.lidFirst[port];
    if (lid < first || lid >= first + model.lidCount[port]) continue;
    found.push({ text: `LID ${lid}: ${nameNode(run, model.lidNode[port])}`, part: { node: model.lidNode[port] } });
  }
  return found;
}

function findGuid(run: Run, text: string): SearchResult[] {
  const digits = text.toLowerCase().replace(/^0x/, "");
  if (!/^[0-9a-f]{4,16}$/.test(digits)) return [];
  const found: SearchResult[] = [];
  for (let node = 0; node < run.model.nodes && found.length < MOST_RESULTS; node++) {
    const guid = run.names.guid(node);
    if (guid.includes(digits)) found.push({ text: `${guid}: ${nameNode(run, node)}`, part: { node } });
  }
  return found;
}

function findNames(run: Run, text: string, hostsOnly: boolean): SearchResult[] {
  const { model, names } = run;
  const wanted = text.toLowerCase();
  const found: (SearchResult & { starts: boolean })[] = [];
  const match = (name: string, said: string, part: State): void => {
    const at = name.toLowerCase().indexOf(wanted);
    if (at >= 0) found.push({ text: said, part, starts: at === 0 });
  };
  model.header.host_names.forEach((name, host) => {
    match(name, `host ${names.host(host)}`, { hosts: [host] });
  });
  if (!hostsOnly)
    model.header.node_names.forEach((name, node) => {
      if (model.nodeKind[node] === SWITCH) match(name, `switch ${nameNode(run, node)}`, { node });
    });
  found.sort((one, other) => Number(other.starts) - Number(one.starts));
  return found.map(({ text: label, part }) => ({ text: label, part }));
}

function nameNode({ model, names }: Run, node: number): string {
  const letter = railLetter(model, model.nodeRail[node]);
  return `${names.node(node)}${letter ? `, rail ${letter}` : ""}`;
}
