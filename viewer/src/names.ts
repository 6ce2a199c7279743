// SPDX-License-Identifier: Apache-2.0
// What things are called, and who is on a link, in words.

import type { Model } from "./data/document";
import type { LoadTable, Share, Shares } from "./data/loads";
import { formatSeconds, formatShare, printable } from "./show";
import type { Selection } from "./state";

export class Names {
  constructor(
    private readonly model: Model,
    private readonly table: LoadTable,
  ) {}

  node(node: number): string {
    return node < 0 ? "unknown" : printable(this.model.header.node_names[node]);
  }

  host(host: number): string {
    return host < 0 ? "unknown" : printable(this.model.header.host_names[host]);
  }

  guid(node: number): string {
    return `0x${this.model.nodeGuid[node].toString(16).padStart(16, "0")}`;
  }

  rank(rank: number): string {
    return printable(this.model.header.rank_names[rank] ?? String(rank));
  }

  /** The first node that a rank is on, -1 for none. */
  nodeOfRank(rank: number): number {
    const rails = this.model.header.rails.length;
    return this.model.rankNode.subarray(rank * rails, (rank + 1) * rails).find((each) => each >= 0) ?? -1;
  }

  /** The sending side of a link end first. */
  end(end: number): string {
    const { endNode, endPort } = this.model;
    const other = end ^ 1;
    // An inferred link has no ports.
    const at = (one: number): string => `${this.node(endNode[one])}${endPort[one] ? ` port ${endPort[one]}` : ""}`;
    return `${at(end)} to ${at(other)}`;
  }

  rail(rail: number): string {
    const name = printable(this.model.header.rails[rail].name);
    // The last folder and file: dumps of all fabrics bear the same names.
    return `${railLetter(this.model, rail)} (${name.split("/").slice(-2).join("/")})`;
  }

  region(region: number): string {
    return nameOrAll(this.model.header.regions[region], "regions");
  }

  operation(operation: number): string {
    return nameOrAll(this.model.header.operations[operation], "operations");
  }

  job(job: number): string {
    return nameOrAll(this.model.header.jobs[job], "jobs");
  }

  /** A pair of those who send and receive: see `LoadTable.endpointPairs`. */
  endpointPair(pair: number): string {
    const pairs = this.table.endpointPairs;
    return pairs ? `${this.endpoint(pairs.source[pair])} to ${this.endpoint(pairs.destination[pair])}` : "";
  }

  private endpoint(endpoint: number): string {
    const ranks = this.model.header.rank_names.length;
    return endpoint < ranks
      ? `rank ${this.rank(endpoint)}`
      : this.node(this.model.flows?.addressNode[endpoint - ranks] ?? -1);
  }

  /** What the user told of a rank or node, a line each. */
  told(of: "rank" | "node", index: number): string[] {
    const { attributes } = this.model;
    return attributes
      .filter((attribute) => attribute.of === of && !Number.isNaN(attribute.value[index]))
      .map(
        ({ name, classes, value }) =>
          `${printable(name)}: ${classes.length ? printable(classes[value[index]]) : value[index]}`,
      );
  }

  leastTime(end: number, amount: number): string {
    const gbps = this.model.linkGbps[end >> 1];
    return Number.isNaN(gbps) ? "speed unknown" : `at least ${formatSeconds((amount * 8) / (gbps * 1e9))}`;
  }

  /** Who is most on a link end, in a sentence: pair, region, operation, each with its share. */
  whoIsOn(selection: Selection, end: number): string {
    const { table } = this;
    if (!table.hasFlows) return "who sends it is not in this file";
    const on = { ...selection, end };
    const say = ({ first, total }: Shares, name: (share: Share) => string): string[] =>
      first.map((share) => `${name(share)} ${formatShare(share.bytes, total)}`);
    const parts = say(table.shares(on, table.by.endpointPair(), 1), ({ key }) => this.endpointPair(key));
    if (knows(this.model.header.regions))
      parts.push(...say(table.shares(on, table.by.region(), 1), ({ key }) => `region ${this.region(key)}`));
    if (knows(this.model.header.operations))
      parts.push(...say(table.shares(on, table.by.operation(), 1), ({ key }) => this.operation(key)));
    if (knows(this.model.header.jobs))
      parts.push(...say(table.shares(on, table.by.job(), 1), ({ key }) => `job ${this.job(key)}`));
    return parts.join("; ");
  }
}

function nameOrAll(name: string, what: string): string {
  return name === "*" ? `all ${what}` : printable(name);
}

/** Whether something is told apart at all. */
export function knows(names: string[]): boolean {
  return names.some((name) => name !== "*");
}

/** What tells rails apart in few letters; nothing where there is but one. */
export function railLetter(model: Model, rail: number): string {
  return model.header.rails.length > 1 ? String.fromCharCode(97 + (rail % 26)) : "";
}
