# SPDX-License-Identifier: Apache-2.0
"""How a topology is inferred from delays, as arguments that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import nan

import numpy as np

from ibprof.errors import InputError, UsageError
from ibprof_converter.cli.arguments import parse_length
from ibprof_converter.latency.files.delay_files import read_delays
from ibprof_converter.latency.model.delays import Delays
from ibprof_converter.topology.infer.bannikov_salnikov import infer_bannikov_salnikov
from ibprof_converter.topology.infer.bufe import infer_bufe
from ibprof_converter.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_converter.topology.infer.model_choice import MODELS
from ibprof_converter.topology.infer.pair_delays import PairDelays, take_pair_delays

METHODS = ("auto", *MODELS, "bufe", "bannikov-salnikov")
_ALIASES = {"bannikov": "bannikov-salnikov"}
_STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean")


def add_method_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the method and what it takes of the delays."""
    parser.add_argument(
        "--method",
        type=lambda text: _ALIASES.get(text, text),
        choices=METHODS,
        default="auto",
        help="auto: the one of levels, additive trees and direct networks that explains the delays best; or one of "
        "these; or a reference: bufe, bannikov-salnikov (default: auto)",
    )
    add_bufe_epsilon(parser)
    parser.add_argument("--epsilon-s", metavar="E", type=_tolerance, default=0.1, help="bannikov-salnikov: (1) (0.1)")
    parser.add_argument(
        "--epsilon-d", metavar="E", type=_tolerance, default=0.5, help="bannikov-salnikov: duplex up to this (0.5)"
    )
    parser.add_argument(
        "--clique-seconds", metavar="S", type=_positive, default=30.0, help="bufe: of CPU time; then it gives up (30)"
    )
    parser.add_argument("--length", metavar="BYTES", type=parse_length, help="of the messages (default: the shortest)")
    parser.add_argument(
        "--statistic", choices=_STATISTICS, help="of the repetitions (default: in which both directions agree best)"
    )
    parser.add_argument(
        "--bootstrap", metavar="N", type=_count, default=100, help="draws for the support of edges (100)"
    )
    parser.add_argument("--seconds", metavar="S", type=_positive, default=10.0, help="for these draws (10)")
    parser.add_argument("--seed", metavar="N", type=_count, default=0, help="of these draws (0)")


def add_bufe_epsilon(parser: argparse.ArgumentParser) -> None:
    """Add the tolerance of Bufe's method."""
    parser.add_argument("--epsilon", metavar="E", type=_tolerance, default=0.1, help="bufe: relative tolerance (0.1)")


def read_processes(name: str) -> Delays:
    """Read delays of one process at least.

    Raises:
        InputError: there is none, or these are no delays.
    """
    delays = read_delays(name, _STATISTICS[:3])
    if not delays.processes:
        raise InputError(name, None, "delays between hosts", "no host")
    return delays


def apply_method(arguments: argparse.Namespace, delays: Delays) -> tuple[Inference, PairDelays | None]:
    """Infer as the arguments say; the values are those of pairs of hosts, where the method takes such.

    Raises:
        UsageError: delays of that length were not measured.
    """
    nothing = np.zeros((0, 2), np.int64)
    if arguments.method == "bannikov-salnikov":
        rows = slice(None)
        if arguments.length is not None:
            place = np.flatnonzero(delays.lengths == arguments.length)
            if not len(place):
                raise UsageError(f"--length: {arguments.length} bytes were not measured")
            rows = slice(int(place[0]), int(place[0]) + 1)
        found = infer_bannikov_salnikov(delays.median[rows], delays.labels, arguments.epsilon_s, arguments.epsilon_d)
        return Inference(found, nothing), None
    values = take_pair_delays(delays, arguments.length, arguments.statistic)
    if arguments.method == "bufe":
        found = infer_bufe(values.seconds, values.hosts, arguments.epsilon, arguments.clique_seconds)
        return Inference(found, nothing), values
    models = MODELS if arguments.method == "auto" else (arguments.method,)
    return infer(values, InferenceEffort(models, arguments.bootstrap, arguments.seconds, arguments.seed)), values


def _tolerance(text: str) -> float:
    return _number(text, lambda value: 0 <= value < 2, "a number from 0 to 2")


def _positive(text: str) -> float:
    return _number(text, lambda value: value > 0, "a number above 0")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)


def _number(text: str, fits: Callable[[float], bool], expected: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return value
