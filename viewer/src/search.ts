// SPDX-License-Identifier: Apache-2.0
// Search for regions, operations, lines that call MPI, ranks, hosts, switches, LIDs and GUIDs.

import { SWITCH } from "./data/model";
import type { Run } from "./run";
import type { State } from "./state";
import { railPrefix } from "./text/names";

const MOST_RESULTS = 12;

export interface SearchResult {
  text: string;
  /** The change of the state that selects this result. */
  part: State;
}

/** Kinds of results, in the order of the list, with the words that restrict a query to a kind. */
const KINDS: [words: string[], find: (run: Run, text: string) => SearchResult[]][] = [
  [["rank", "ranks"], findRanks],
  [["lid"], findLid],
  [["guid"], findGuid],
  [["region"], findRegions],
  [["operation"], findOperations],
  [["line", "site"], findSites],
  [["host"], findHosts],
  [["switch"], findSwitches],
];

/**
 * Return some matches of each kind for a query: `rank 7`, `solver.c:212`, `0x0002c903...`, or part of a name. Within a
 * kind, names that begin with the query come first.
 */
export function search(run: Run, query: string): SearchResult[] {
  const [, word = "", rest = ""] = /^([a-z]+)\s+(.*)$/i.exec(query) ?? [];
  const kind = word.toLowerCase();
  const isKind = KINDS.some(([words]) => words.includes(kind));
  const found = KINDS.map(([words, find]) => {
    if (words.includes(kind)) return find(run, rest);
    // Search names for the whole query, because a name may begin with the word of another kind.
    return isKind && !NAMED.has(find) ? [] : find(run, query);
  });
  let most = 1;
  const count = (limit: number): number => found.reduce((sum, each) => sum + Math.min(each.length, limit), 0);
  while (most < MOST_RESULTS && count(most + 1) <= MOST_RESULTS) most++;
  const first = found.map((each) => each.slice(0, most));
  // Fill the rest of the list with further results of the first kinds.
  let left = MOST_RESULTS - count(most);
  return first.flatMap((each, at) => {
    const more = found[at].slice(most, most + Math.max(0, left));
    left -= more.length;
    return [...each, ...more];
  });
}

/** Find each job's rank with a given number, or the ranks named by a number in a range such as `4-7`. */
function findRanks({ model, names }: Run, text: string): SearchResult[] {
  const [, first, last] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  if (first !== undefined) {
    const isWithin = (name: string): boolean => /^\d+$/.test(name) && +first <= +name && +name <= +last;
    const ranks = model.header.rank_names.flatMap((name, rank) => (isWithin(name) ? [rank] : []));
    return ranks.length ? [{ text: `ranks ${first} to ${last}`, part: { ranks } }] : [];
  }
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

function findRegions({ model, names, table }: Run, text: string): SearchResult[] {
  const known = table.hasFlows ? model.header.regions : [];
  return match(known, text, (region) => ({ text: `region ${names.region(region)}`, part: { region } }));
}

function findOperations({ model, names, table }: Run, text: string): SearchResult[] {
  const known = table.hasFlows ? model.header.operations : [];
  const withoutPrefix = (name: string): string => name.replace(/^mpi_/i, "");
  return match(known.map(withoutPrefix), withoutPrefix(text), (operation) => ({
    text: `operation ${names.operation(operation)}`,
    part: { operation },
  }));
}

function findSites({ model, names, table }: Run, text: string): SearchResult[] {
  const known = table.hasFlows ? model.header.sites : [];
  return match(known, text, (site) => ({ text: `line ${names.site(site)}`, part: { site } }));
}

function findHosts({ model, names }: Run, text: string): SearchResult[] {
  return match(model.header.host_names, text, (host) => ({
    text: `host ${names.host(host)}`,
    part: { hosts: [host] },
  }));
}

function findSwitches(run: Run, text: string): SearchResult[] {
  const { header, nodeKind } = run.model;
  const known = header.node_names.map((name, node) => (nodeKind[node] === SWITCH ? name : ""));
  return match(known, text, (node) => ({ text: `switch ${nameNode(run, node)}`, part: { node } }));
}

const NAMED = new Set([findRegions, findOperations, findSites, findHosts, findSwitches]);

/** Return the results whose names contain the text, first names that begin with the text. The name `*` is left out. */
function match(known: string[], text: string, make: (index: number) => SearchResult): SearchResult[] {
  const wanted = text.toLowerCase();
  const [starting, others]: [number[], number[]] = [[], []];
  known.forEach((name, index) => {
    const at = name === "*" || !wanted ? -1 : name.toLowerCase().indexOf(wanted);
    if (at >= 0) (at ? others : starting).push(index);
  });
  return [...starting, ...others].slice(0, MOST_RESULTS).map(make);
}

function nameNode({ model, names }: Run, node: number): string {
  return `${railPrefix(model, model.nodeRail[node])}${names.node(node)}`;
}
