# SPDX-License-Identifier: Apache-2.0
"""Queries on measured delays: each query returns a JSON document, and writes pictures and files if requested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ibprof.errors import InconsistentError, UsageError
from ibprof_lab.lab_choices import UNITS
from ibprof_lab.latency.features.delay_features import FEWEST_LENGTHS, find_features
from ibprof_lab.latency.features.outliers import DelayChange, compare_delays, find_outlying_processes
from ibprof_lab.latency.features.pair_clusters import cluster_pairs, write_compressed
from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.files.netcdf_files import write_classic
from ibprof_lab.latency.files.pair_files import write_pairs
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.latency.outputs.delay_tables import (
    MOST_SHOWN,
    Document,
    describe_delays,
    describe_features,
    describe_matrix,
)

_MOST_IN_JSON = 512
"""For more processes than this, the JSON document has no matrix without `--length` or `--bandwidth`."""

_QUARTILES = ("lower_quartile", "upper_quartile")


def query_delays(
    delays: Path, unit: str, length: int | None, statistic: str, bandwidth: bool, png: Path | None, json: bool
) -> Document:
    """Return a summary of the measurement, and the matrix of one length if it is small.

    A large matrix is returned only if `length` or `bandwidth` is given.

    The arguments are those of `ibprof-latency show`.

    Raises:
        UsageError: the file lacks the statistic or the length.
        InputError: the file cannot be read.
    """
    read = read_delays(delays, unit=UNITS[unit])
    if statistic not in read.present:
        raise UsageError(f"--statistic: expected one of {', '.join(read.present)}, found {statistic}")
    index = _find_length(read, length)
    if png:
        from ibprof_lab.latency.outputs.delay_pictures import draw_matrix  # noqa: PLC0415  (slow to import)

        draw_matrix(png, read, index, statistic)
    document = describe_delays(read, statistic)
    # Leave out large matrices: the matrix of thousands of processes is gigabytes of text.
    is_small = read.processes <= (_MOST_IN_JSON if json else MOST_SHOWN)
    if len(read.lengths) and (is_small or length is not None or bandwidth):
        document["matrix"] = describe_matrix(read, index, statistic, bandwidth)
    return document


def query_features(
    delays: Path,
    unit: str,
    output: Path | None,
    threshold: float | None,
    peak_threshold: float | None,
    step_threshold: float | None,
    clusters: int | None,
    by: str,
    seed: int,
) -> Document:
    """Return peaks, steps, clusters and outlying processes, and write the files of the output folder.

    The arguments are those of `ibprof-latency features`.

    Raises:
        InputError: the file cannot be read.
        OSError: the folder cannot be written.
    """
    read = read_delays(delays, _QUARTILES, UNITS[unit])
    features = found = compressed = None
    if len(read.lengths) >= FEWEST_LENGTHS:
        limits = (threshold if each is None else each for each in (peak_threshold, step_threshold))
        features = find_features(read, *limits)
    if features is not None and len(features.pairs):
        found = cluster_pairs(features, clusters, by, seed)
        if output:
            from ibprof_lab.latency.outputs import delay_pictures  # noqa: PLC0415  (slow to import)
            from ibprof_lab.latency.outputs.space_page import write_steps_page  # noqa: PLC0415  (slow to import)

            output.mkdir(parents=True, exist_ok=True)
            compressed = write_compressed(output / "clusters.npz", read, features, found)
            delay_pictures.draw_curves(output / "curves.png", read, features, found)
            delay_pictures.draw_histograms(output / "histograms.png", read, features)
            delay_pictures.draw_clusters(output / "clusters.png", read, features, found)
            delay_pictures.draw_steps(output / "steps.png", read, features, found)
            write_steps_page(output / "steps.html", read, features, found)
    document = describe_features(read, features, found, compressed, find_outlying_processes(read))
    if output and found is not None:
        (output / "features.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def query_changes(before: Path, after: Path, unit: str, least: float, output: Path | None) -> DelayChange:
    """Return the pairs that changed between two measurements, and write them to `output` if given.

    The arguments are those of `ibprof-latency diff`.

    Raises:
        InconsistentError: the measurements have no process or no length in common.
        InputError: a file cannot be read.
    """
    one, other = (read_delays(path, _QUARTILES, UNITS[unit]) for path in (before, after))
    try:
        change = compare_delays(one, other, least)
    except InconsistentError as error:
        raise InconsistentError(f"{before}, {after}: {error}") from error
    if output:
        write_pairs(output, change.labels, change.pairs, change.ratios)
    return change


def convert_delays(delays: Path, unit: str, output: Path, length: int | None, clustbench: bool) -> None:
    """Write delays in another format; the arguments are those of `ibprof-latency convert`.

    Raises:
        UsageError: the length was not measured.
        InputError: the file cannot be read, or the format cannot hold several lengths.
        OSError: the file cannot be written.
    """
    read = read_delays(delays, unit=UNITS[unit])
    if length is not None:
        read = read.select(lengths=[_find_length(read, length)])
    (write_classic if clustbench else write_delays)(output, read)


def _find_length(delays: Delays, length: int | None) -> int:
    """Return the index of a message length; 0 for None."""
    if length is None:
        return 0
    found = np.flatnonzero(delays.lengths == length)
    if len(found) != 1:
        there = ", ".join(map(str, delays.lengths[:12].tolist())) + (", ..." if len(delays.lengths) > 12 else "")
        raise UsageError(f"--length: expected one of {there}, found {length}")
    return int(found[0])
