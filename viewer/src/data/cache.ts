// SPDX-License-Identifier: Apache-2.0
// Values that are costly to compute, kept once they are.

/** Return a function that computes its value at the first call. */
export function lazy<T>(compute: () => T): () => T {
  let kept: { value: T } | undefined;
  return () => {
    kept ??= { value: compute() };
    return kept.value;
  };
}

/** Return a function that keeps its value for the last argument alone. */
export function keepLast<K, T>(compute: (argument: K) => T): (argument: K) => T {
  let kept: { argument: string; value: T } | undefined;
  return (argument) => {
    if (kept?.argument !== String(argument)) kept = { argument: String(argument), value: compute(argument) };
    return kept.value;
  };
}
