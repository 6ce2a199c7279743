# SPDX-License-Identifier: Apache-2.0
"""Argument of all commands that take delays: the unit where a file does not say it."""

from __future__ import annotations

import argparse

from ibprof_lab.latency.files.delay_files import UNITS


def add_unit(parser: argparse.ArgumentParser) -> None:
    """Add the unit of delays in files that do not say it."""
    parser.add_argument("--unit", choices=tuple(UNITS), default="us", help="of CSV and numpy matrices (default: `us`)")
