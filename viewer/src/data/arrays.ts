// SPDX-License-Identifier: Apache-2.0
// Types of the arrays in a document.

/** Element types, as docs/formats/view.md names them. */
export type ArrayType = "u1" | "u2" | "u4" | "i4" | "u8" | "f4" | "f8";

/** An array of any element type except 64-bit integers. */
export type NumberArray = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;
