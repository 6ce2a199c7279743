// SPDX-License-Identifier: Apache-2.0
// The window whose address holds the state.

/** Whether a report embeds the page in a frame, which has no address. */
export const isEmbedded = window.location.protocol === "about:";

/** The page's own window; the report's where it is embedded. */
export const addressWindow: Window = isEmbedded ? window.parent : window;
