# SPDX-License-Identifier: Apache-2.0
"""Properties of links other than the bytes on them: delays, probabilities, speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.viewer.packing import Arrays


@dataclass(frozen=True, slots=True)
class LinkValue:
    """What is known of links beside the bytes on them.

    Attributes:
        name: of it.
        unit: `s`, `Gb/s`, or nothing.
        value: float64 [2 * link], from each end to the other; NaN where nothing is known or nothing leads there. As
            `describe_link_values` takes them by the page's numbers of link ends, as `encode_document` does by those of
            the fabrics, one rail after the other.
    """

    name: str
    unit: str
    value: npt.NDArray[np.float64]


def describe_link_values(header: dict[str, object], arrays: Arrays, values: Sequence[LinkValue]) -> None:
    """Add what is known of links beside the bytes on them."""
    header["link_values"] = [{"name": each.name, "unit": each.unit} for each in values]
    arrays |= {f"link_value_{number}": each.value for number, each in enumerate(values)}
