// SPDX-License-Identifier: Apache-2.0
// Caches for values that take long to compute.

/** Return a function that computes its value at the first call, and keeps this value. */
export function lazy<T>(compute: () => T): () => T {
  let kept: { value: T } | undefined;
  return () => {
    kept ??= { value: compute() };
    return kept.value;
  };
}

/** Return a function that computes anew only if its argument differs from the argument of the last call. */
export function keepLast<K, T>(compute: (argument: K) => T): (argument: K) => T {
  let kept: { argument: string; value: T } | undefined;
  return (argument) => {
    if (kept?.argument !== String(argument)) kept = { argument: String(argument), value: compute(argument) };
    return kept.value;
  };
}
