# SPDX-License-Identifier: Apache-2.0
"""Queries on measured delays: options in, documents out; pictures and files on request."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
"""Largest number of processes whose matrix is in the JSON document without --length."""

_QUARTILES = ("lower_quartile", "upper_quartile")


@dataclass(frozen=True, slots=True)
class ShowDelaysOptions:
    """The arguments of `ibprof-latency show`."""

    delays: Path
    unit: str
    length: int | None
    statistic: str
    bandwidth: bool
    png: Path | None
    json: bool


def query_delays(options: ShowDelaysOptions) -> Document:
    """Return a summary of the measurement, with the matrix of one length if small enough or requested.

    Raises:
        UsageError: the file lacks the statistic or the length.
        InputError: the file cannot be read.
    """
    delays = read_delays(options.delays, unit=UNITS[options.unit])
    if options.statistic not in delays.present:
        raise UsageError(f"--statistic: expected one of {', '.join(delays.present)}, found {options.statistic}")
    index = _find_length(delays, options.length)
    if options.png:
        from ibprof_lab.latency.outputs.delay_pictures import draw_matrix  # noqa: PLC0415  (slow to import)

        draw_matrix(options.png, delays, index, options.statistic)
    document = describe_delays(delays, options.statistic)
    # The matrix of thousands of processes is gigabytes of text: only on request.
    is_small = delays.processes <= (_MOST_IN_JSON if options.json else MOST_SHOWN)
    if len(delays.lengths) and (is_small or options.length is not None or options.bandwidth):
        document["matrix"] = describe_matrix(delays, index, options.statistic, options.bandwidth)
    return document


@dataclass(frozen=True, slots=True)
class FeaturesOptions:
    """The arguments of `ibprof-latency features`."""

    delays: Path
    unit: str
    output: Path | None
    threshold: float | None
    peak_threshold: float | None
    step_threshold: float | None
    clusters: int | None
    by: str
    seed: int


def query_features(options: FeaturesOptions) -> Document:
    """Return peaks, steps, clusters and outlying processes, and write the files of the output folder.

    Raises:
        InputError: the file cannot be read.
        OSError: the folder cannot be written.
    """
    delays = read_delays(options.delays, _QUARTILES, UNITS[options.unit])
    features = clusters = compressed = None
    if len(delays.lengths) >= FEWEST_LENGTHS:
        features = find_features(
            delays,
            options.threshold if options.peak_threshold is None else options.peak_threshold,
            options.threshold if options.step_threshold is None else options.step_threshold,
        )
    if features is not None and len(features.pairs):
        clusters = cluster_pairs(features, options.clusters, options.by, options.seed)
        if options.output:
            from ibprof_lab.latency.outputs import delay_pictures  # noqa: PLC0415  (slow to import)
            from ibprof_lab.latency.outputs.space_page import write_steps_page  # noqa: PLC0415  (the same)

            options.output.mkdir(parents=True, exist_ok=True)
            compressed = write_compressed(options.output / "clusters.npz", delays, features, clusters)
            delay_pictures.draw_curves(options.output / "curves.png", delays, features, clusters)
            delay_pictures.draw_histograms(options.output / "histograms.png", delays, features)
            delay_pictures.draw_clusters(options.output / "clusters.png", delays, features, clusters)
            delay_pictures.draw_steps(options.output / "steps.png", delays, features, clusters)
            write_steps_page(options.output / "steps.html", delays, features, clusters)
    document = describe_features(delays, features, clusters, compressed, find_outlying_processes(delays))
    if options.output and clusters is not None:
        (options.output / "features.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


@dataclass(frozen=True, slots=True)
class DiffDelaysOptions:
    """The arguments of `ibprof-latency diff`."""

    before: Path
    after: Path
    unit: str
    least: float
    output: Path | None


def query_changes(options: DiffDelaysOptions) -> DelayChange:
    """Return the pairs that changed between two measurements, and write them on request.

    Raises:
        InconsistentError: the measurements have no process or no length in common.
        InputError: a file cannot be read.
    """
    before, after = (read_delays(path, _QUARTILES, UNITS[options.unit]) for path in (options.before, options.after))
    try:
        change = compare_delays(before, after, options.least)
    except InconsistentError as error:
        raise InconsistentError(f"{options.before}, {options.after}: {error}") from error
    if options.output:
        write_pairs(options.output, change.labels, change.pairs, change.ratios)
    return change


@dataclass(frozen=True, slots=True)
class ConvertDelaysOptions:
    """The arguments of `ibprof-latency convert`."""

    delays: Path
    unit: str
    output: Path
    length: int | None
    clustbench: bool


def convert_delays(options: ConvertDelaysOptions) -> None:
    """Write delays in another format.

    Raises:
        UsageError: the length was not measured.
        InputError: the file cannot be read, or the format cannot hold several lengths.
        OSError: the file cannot be written.
    """
    delays = read_delays(options.delays, unit=UNITS[options.unit])
    if options.length is not None:
        delays = delays.select(lengths=[_find_length(delays, options.length)])
    if options.clustbench:
        write_classic(options.output, delays)
    else:
        write_delays(options.output, delays)


def _find_length(delays: Delays, length: int | None) -> int:
    """Return the index of a message length; 0 for None."""
    if length is None:
        return 0
    found = np.flatnonzero(delays.lengths == length)
    if len(found) != 1:
        there = ", ".join(map(str, delays.lengths[:12].tolist())) + (", ..." if len(delays.lengths) > 12 else "")
        raise UsageError(f"--length: expected one of {there}, found {length}")
    return int(found[0])
