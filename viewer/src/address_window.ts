// SPDX-License-Identifier: Apache-2.0
// The browser window whose URL contains the state of the page.

/** True if a report embeds the page in a frame, whose URL (about:srcdoc) cannot contain the state. */
export const isEmbedded = window.location.protocol === "about:";

/** The report's window if the page is embedded, else the page's window. */
export const addressWindow: Window = isEmbedded ? window.parent : window;
