# SPDX-License-Identifier: Apache-2.0
"""Write the web page of steps in delays, in space."""

from __future__ import annotations

from pathlib import Path

from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_converter.viewer.html_page import render_page
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.pair_clusters import PairClusters
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.latency.outputs.steps_document import encode_steps


def write_steps_page(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Write the page.

    Raises:
        OSError: the file cannot be written.
    """
    write_atomically(path, render_page(encode_steps("steps in delays", delays, features, clusters)).encode())
