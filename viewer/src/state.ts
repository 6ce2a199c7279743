// SPDX-License-Identifier: Apache-2.0
// What is chosen, as the fragment of the address: `#region=1&rank=5&log=1`. A view can so be passed on.

import type { Model } from "./document";
import type { Selection } from "./loads";

export interface State {
  selection: Selection;
  logarithmic: boolean;
  /** null: as the system has it. */
  dark: boolean | null;
}

/** The window whose address holds the state: the report's where a report frames this page, which has no address. */
export const addressed: Window = window.location.protocol === "about:" ? window.parent : window;

const NUMBER = /^\d{1,9}$/;

function limits(model: Model): Required<Record<keyof Selection, number>> {
  const { header } = model;
  return {
    rank: header.rank_names.length,
    source: header.rank_names.length,
    destination: header.rank_names.length,
    region: header.regions.length,
    operation: header.operations.length,
    job: header.jobs.length,
    end: 2 * model.links,
  };
}

/** Reads a fragment; what is out of range, or means nothing, is left out. */
export function readState(fragment: string, model: Model): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const selection: Selection = {};
  for (const [part, limit] of Object.entries(limits(model))) {
    const text = given.get(part) ?? "";
    if (NUMBER.test(text) && Number(text) < limit) selection[part as keyof Selection] = Number(text);
  }
  const dark = given.get("theme");
  return {
    selection,
    logarithmic: given.get("log") === "1",
    dark: dark === "dark" ? true : dark === "light" ? false : null,
  };
}

export function writeState(state: State): string {
  const said = new URLSearchParams();
  for (const [part, value] of Object.entries(state.selection)) if (value !== undefined) said.set(part, String(value));
  if (state.logarithmic) said.set("log", "1");
  if (state.dark !== null) said.set("theme", state.dark ? "dark" : "light");
  return `#${said}`;
}
