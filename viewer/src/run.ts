// SPDX-License-Identifier: Apache-2.0
// A run on the fabric, and two runs that are compared.

import type { Amounts } from "./data/amounts";
import type { Comparison } from "./data/comparison";
import type { LoadTable } from "./data/load_table";
import type { Model } from "./data/model";
import type { Names } from "./text/names";

/** Traffic on the fabric: a profile, possibly with another rank placement, or port counters. */
export interface Run {
  /** A name that distinguishes the run from other runs in the file; empty for a single run. */
  readonly name: string;
  readonly model: Model;
  readonly table: LoadTable;
  readonly names: Names;
}

/** The run that the page's run is compared with. */
export interface ComparedRun {
  readonly run: Run;
  readonly comparison: Comparison;
  /** [link direction], the selection's load in the page's run (`before`) and in this run (`after`). */
  readonly before: Amounts;
  readonly after: Amounts;
}
