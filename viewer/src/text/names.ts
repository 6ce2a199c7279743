// SPDX-License-Identifier: Apache-2.0
// Names of nodes, ranks, links and categories; text about the senders of a link's bytes.

import type { LoadTable, Share, Shares } from "../data/load_table";
import type { Model } from "../data/model";
import { formatSeconds, formatShare, printable } from "../format";
import type { Selection } from "../state";

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

  /** Return the first node of a rank; -1 if it has no node. */
  nodeOfRank(rank: number): number {
    const rails = this.model.header.rails.length;
    return this.model.rankNode.subarray(rank * rails, (rank + 1) * rails).find((each) => each >= 0) ?? -1;
  }

  /** Name a link direction, the transmitting port first. */
  end(end: number): string {
    const { endNode, endPort } = this.model;
    const other = end ^ 1;
    // Links that were inferred from delays have no ports.
    const at = (one: number): string => `${this.node(endNode[one])}${endPort[one] ? ` port ${endPort[one]}` : ""}`;
    return `${railPrefix(this.model, this.model.nodeRail[endNode[end]])}${at(end)} to ${at(other)}`;
  }

  rail(rail: number): string {
    const name = printable(this.model.header.rails[rail].name);
    // Name the folder too, because dumps of different fabrics often have the same file name.
    const file = `(${name.split("/").slice(-2).join("/")})`;
    const letter = railLetter(this.model, rail);
    return letter ? `${rail} ${file}, rows ${letter}` : file;
  }

  region(region: number): string {
    return nameOrAll(this.model.header.regions[region], "regions");
  }

  operation(operation: number): string {
    return nameOrAll(this.model.header.operations[operation], "operations");
  }

  site(site: number): string {
    return nameOrAll(this.model.header.sites[site], "sites");
  }

  job(job: number): string {
    return nameOrAll(this.model.header.jobs[job], "jobs");
  }

  /** Name a pair of endpoints: see `FlowKeys.endpointPairs`. */
  endpointPair(pair: number): string {
    const pairs = this.table.by.endpointPairs;
    return pairs ? `${this.endpoint(pairs.source[pair])} to ${this.endpoint(pairs.destination[pair])}` : "";
  }

  private endpoint(endpoint: number): string {
    const ranks = this.model.header.rank_names.length;
    return endpoint < ranks
      ? `rank ${this.rank(endpoint)}`
      : this.node(this.model.flows?.addressNode[endpoint - ranks] ?? -1);
  }

  /** Return the attributes of a rank or node, one line each. */
  attributesOf(of: "rank" | "node", index: number): string[] {
    const { attributes } = this.model;
    return attributes
      .filter((attribute) => attribute.of === of && !Number.isNaN(attribute.value[index]))
      .map(
        ({ name, classes, value }) =>
          `${printable(name)}: ${classes.length ? printable(classes[value[index]]) : value[index]}`,
      );
  }

  /** Return a time as text: seconds since the first interval, or the time of day (UTC) if intervals have jobs. */
  moment(seconds: number): string {
    const { began_s: began } = this.model.header;
    return began === undefined
      ? formatSeconds(seconds)
      : new Date((began + seconds) * 1000).toISOString().slice(5, 16).replace("T", " ");
  }

  /** Describe the time that a link direction needs at line rate for `amount` bytes. */
  lineRateTime(end: number, amount: number): string {
    const gbps = this.model.linkGbps[end >> 1];
    return Number.isNaN(gbps) ? "speed unknown" : `${formatSeconds((amount * 8) / (gbps * 1e9))} at line rate`;
  }

  /** Describe the pair, region, operation, site and job with the largest share of a link direction. */
  describeSenders(selection: Selection, end: number): string {
    const { table } = this;
    if (!table.hasFlows) return "senders not recorded in this file";
    const on = { ...selection, end };
    const describe = ({ first, total }: Shares, name: (share: Share) => string): string[] =>
      first.map((share) => `${name(share)} ${formatShare(share.bytes, total)}`);
    const parts = describe(table.shares(on, table.by.endpointPair(), 1), ({ key }) => this.endpointPair(key));
    if (hasSeveral(this.model.header.regions))
      parts.push(...describe(table.shares(on, table.by.region(), 1), ({ key }) => `region ${this.region(key)}`));
    if (hasSeveral(this.model.header.operations))
      parts.push(...describe(table.shares(on, table.by.operation(), 1), ({ key }) => this.operation(key)));
    if (hasSeveral(this.model.header.sites))
      parts.push(...describe(table.shares(on, table.by.site(), 1), ({ key }) => this.site(key)));
    if (hasSeveral(this.model.header.jobs))
      parts.push(...describe(table.shares(on, table.by.job(), 1), ({ key }) => `job ${this.job(key)}`));
    return parts.join("; ");
  }
}

function nameOrAll(name: string, what: string): string {
  return name === "*" ? `all ${what}` : printable(name);
}

/** Return true if any name differs from `*`, which stands for all. */
export function hasSeveral(names: string[]): boolean {
  return names.some((name) => name !== "*");
}

/** Return the prefix of names with the rail's number, as in reports; empty for a single rail. */
export function railPrefix(model: Model, rail: number): string {
  return model.header.rails.length > 1 ? `rail ${rail}: ` : "";
}

/** Return the letter of a rail in rows of pictures; empty for a single rail. */
export function railLetter(model: Model, rail: number): string {
  return model.header.rails.length > 1 ? String.fromCharCode(97 + (rail % 26)) : "";
}
