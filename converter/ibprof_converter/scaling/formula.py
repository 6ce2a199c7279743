# SPDX-License-Identifier: Apache-2.0
"""Formulas of the problem size n, as users type them: `2*n**3 - n**2`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ibprof.errors import UsageError, quote_found


def parse_formula(option: str, text: str) -> Callable[[float], float]:
    """Make a function of n from an expression with + - * / **, sqrt, log, log2 and other numpy functions.

    Args:
        option: that it came from; for messages.
        text: the expression; the other name in it is n.

    Raises:
        UsageError: it is no such expression, or is no positive number at n = 2.
    """
    import numexpr  # noqa: PLC0415  (slow to import)

    def evaluate(n: float) -> float:
        try:
            return float(numexpr.evaluate(text.replace("^", "**"), {"n": np.float64(n)}, {}))
        except Exception as error:  # numexpr raises what Python's parser and numpy do
            raise UsageError(f"{option}: expected a formula of n such as 2*n**3, found {quote_found(text)}") from error

    value = evaluate(2.0)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option}: expected a positive number for n = 2, found {value:g} from {quote_found(text)}")
    return evaluate
