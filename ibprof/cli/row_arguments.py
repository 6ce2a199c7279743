# SPDX-License-Identifier: Apache-2.0
"""Arguments that choose rows of a profile, the same in all commands that have them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibprof.profile.row_choice import RowChoice


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --operation, --region and --site."""
    parser.add_argument("--operation", metavar="OP", help="only this MPI operation, such as ALLTOALL")
    parser.add_argument("--region", metavar="NAME", help="only this region")
    parser.add_argument("--site", metavar="FILE:LINE", help="only calls of this line, if sites were recorded")


def row_options(arguments: argparse.Namespace) -> RowChoice:
    """Return the choice that the arguments state."""
    from ibprof.profile.row_choice import RowChoice  # noqa: PLC0415  (--help must come at once)

    return RowChoice(arguments.operation, arguments.region, arguments.site)
