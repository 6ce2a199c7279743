// SPDX-License-Identifier: Apache-2.0
// Starts the page: decodes its data and shows the view.

import { readDocument } from "./data/document";
import { makeScriptApi } from "./script_api";
import { View } from "./view";
import { byId } from "./widgets/dom";

async function start(): Promise<void> {
  const view = new View(await readDocument(byId("data").textContent ?? ""));
  Object.assign(window, { ibprof: makeScriptApi(view) });
  document.documentElement.dataset.ready = "true";
  performance.mark("ibprof-shown");
  // Prepare the index before the user first asks for senders on a link.
  window.setTimeout(() => {
    for (const { table } of view.runs) table.prepare();
  });
}

start().catch((error: unknown) => {
  const failure = byId("failure");
  failure.hidden = false;
  failure.textContent = `Cannot show this file: ${error instanceof Error ? error.message : String(error)}`;
});
