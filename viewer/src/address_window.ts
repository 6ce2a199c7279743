// SPDX-License-Identifier: Apache-2.0
// The window whose address holds the state.

/** The page's own window; the report's where a report embeds the page in a frame, which has no address. */
export const addressWindow: Window = window.location.protocol === "about:" ? window.parent : window;
