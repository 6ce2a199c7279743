// SPDX-License-Identifier: Apache-2.0
// The window whose address holds the state.

/** True if a report embeds the page in a frame, which has no address. */
export const isEmbedded = window.location.protocol === "about:";

/** The report's window if the page is embedded, else the page's window. */
export const addressWindow: Window = isEmbedded ? window.parent : window;
