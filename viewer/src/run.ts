// SPDX-License-Identifier: Apache-2.0
// A run on the fabric, and two runs that are compared.

import type { Amounts } from "./data/amounts";
import type { Comparison } from "./data/comparison";
import type { LoadTable } from "./data/load_table";
import type { Model } from "./data/model";
import type { Names } from "./text/names";

/** Traffic mapped on the fabric: a profile, another rank placement of it, port counters. */
export interface Run {
  /** Distinguishes the run from others in the file; empty if it is the only one. */
  readonly name: string;
  readonly model: Model;
  readonly table: LoadTable;
  readonly names: Names;
}

/** The run that the page's run is compared with. */
export interface ComparedRun {
  readonly run: Run;
  readonly comparison: Comparison;
  /** Loads of link directions by the selection, in the page's run and in this one. */
  readonly before: Amounts;
  readonly after: Amounts;
}
