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
    """A property of links other than the bytes on them.

    Attributes:
        name: its name.
        unit: `s`, `Gb/s`, or empty.
        value: float64 [2 * link], by link direction; NaN where the value is unknown or the link does not lead that
            way. `describe_link_values` expects the link directions of the page; `encode_document` those of the
            fabrics, one rail after the other.
    """

    name: str
    unit: str
    value: npt.NDArray[np.float64]


def describe_link_values(header: dict[str, object], arrays: Arrays, values: Sequence[LinkValue]) -> None:
    """Add properties of links to a header and its arrays."""
    header["link_values"] = [{"name": each.name, "unit": each.unit} for each in values]
    arrays |= {f"link_value_{number}": each.value for number, each in enumerate(values)}
