# SPDX-License-Identifier: Apache-2.0
"""Formulas of the problem size n, as users type them: `2*n**3 - n**2`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ibprof.errors import UsageError, quote_found


def parse_formula(option: str, text: str) -> Callable[[float], float]:
    """Return a function of n from an expression with + - * / **, sqrt, log, log2 and other numpy functions.

    Args:
        option: name of the option, for messages.
        text: the expression; its variable is n.

    Raises:
        UsageError: the expression is invalid, or not positive at n = 2.
    """
    import numexpr  # noqa: PLC0415  (slow to import)

    def evaluate(n: float) -> float:
        try:
            return float(numexpr.evaluate(text.replace("^", "**"), {"n": np.float64(n)}, {}))
        except Exception as error:  # numexpr raises errors of Python's parser and of numpy
            raise UsageError(f"{option}: expected a formula of n such as 2*n**3, found {quote_found(text)}") from error

    value = evaluate(2.0)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option}: expected a positive number for n = 2, found {value:g} from {quote_found(text)}")
    return evaluate


def read_operations(given: Sequence[str]) -> tuple[Callable[[float], float], dict[str, Callable[[float], float]]]:
    """Return the formula of the whole program, and formulas by region; without a whole, it is the sum of the regions.

    Args:
        given: formulas; a formula of a region has the form `REGION:FORMULA`.

    Raises:
        UsageError: a formula is invalid, or several formulas are for the whole program.
    """
    regions = {
        name: parse_formula("--operations", formula)
        for name, colon, formula in (each.rpartition(":") for each in given)
        if colon
    }
    whole = [parse_formula("--operations", each) for each in given if ":" not in each]
    if len(whole) > 1:
        raise UsageError("--operations: expected one formula for the whole, and others as REGION:FORMULA")
    return whole[0] if whole else lambda n: sum(of_size(n) for of_size in regions.values()), regions
