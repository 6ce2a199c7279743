# SPDX-License-Identifier: Apache-2.0
"""`ibprof-scaling`: predict run time and speed-up as functions of the number of processes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ibprof.cli.command import command, make_parser, print_document, rename_option
from ibprof.errors import quote_found
from ibprof_converter.cli.arguments import (
    Subcommands,
    add_subcommand,
    add_subcommands,
    call_with_options,
    count_in,
    number_in,
    parse_figure,
    parse_subcommand,
)
from ibprof_lab.cli.lab_commands import add_unit
from ibprof_lab.lab_choices import BLOCK, HOSTS, RANKS, STRONG, WEAK
from ibprof_lab.scaling.scaling_model import WORD
from ibprof_lab.scaling.top500 import UNITS

NAME = "ibprof-scaling"

_EXAMPLES = """\
examples:
  ibprof-scaling linpack --n 10000 --l-peak 8e9 --bandwidth 1.5e9
  ibprof-scaling matrix --n 40000 --l-peak 8e9 --bandwidth 1.5e9 --figure matrix.png
  ibprof-scaling fit 512:run4.otf2 512:run9.otf2 512:run16.otf2 --operations '2*n**3' --data '16*n**2' \\
      --l-peak 8e9 --fabric ibdiagnet.lst --json
  ibprof-scaling predict run2.otf2 run4.otf2 run8.otf2 --processes 16,32
  ibprof-scaling predict 512:run4 512:run8 512:run16 --operations '2*n**3' --delays delays.nc \\
      --fabric ibdiagnet.lst --processes 32,64
  ibprof-scaling hpl --n 11870208 --grid 288x306 --rate 116e9:124e9 --bandwidth 5e9 --latency 2e-6
  ibprof-scaling hpl --n 20000 --nb 80 --grid 4x4 --rate 400e6 --bandwidth 132e6 --slots 2 --memory 320e6
  ibprof-scaling shares --operations 1e12 --data 1e9 --exchanged 2e8 --bandwidth 1.5e9 --peaks 8e9,8e9,4e9
  ibprof-scaling top500 list.csv --unit TFlop/s
"""

_parse_number = number_in(1e-30, 1e30)


@command(NAME)
def main(argv: Sequence[str] | None) -> int | None:
    """Run `ibprof-scaling`."""
    return parse_subcommand(_parser(), argv)()


def _build(arguments: argparse.Namespace) -> Callable[[], None]:
    """Return a function that runs the selected query and prints its document, as JSON or as tables."""
    # Imported late: --help and invalid options do not need these modules, which are slow to import.
    from ibprof_lab.scaling import hpl, scaling_document, scaling_queries  # noqa: PLC0415
    from ibprof_lab.scaling.measured import prediction_query  # noqa: PLC0415

    kernel = scaling_queries.query_kernel, scaling_document.print_kernel
    queries: dict[str, tuple[Any, Any]] = {
        "scalar": kernel,
        "matrix": kernel,
        "linpack": kernel,
        "fit": (scaling_queries.query_recordings, scaling_document.print_study),
        "predict": (prediction_query.query_prediction, prediction_query.print_prediction),
        "hpl": (hpl.query_hpl, hpl.print_hpl),
        "shares": (scaling_queries.query_shares, scaling_document.print_shares),
        "top500": (scaling_document.describe_list, scaling_document.print_systems),
    }
    query, show = queries[arguments.command]

    def run() -> None:
        if "l_peak" in arguments:
            arguments.cluster = call_with_options(scaling_queries.find_cluster, arguments)
        print_document(call_with_options(query, arguments), show, arguments.json)

    return run


def _parser() -> argparse.ArgumentParser:
    description = (
        "Predict how many processes still pay off: speed-up, half-peak and maximum of an application on a cluster, by "
        "the model of Kredel et al. (slides of ISC'13). Exchanged bytes are computed or recorded."
    )
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_kernel(commands, "scalar", "predict the speed-up of a scalar product of two vectors (slide 15)")
    _add_kernel(commands, "matrix", "predict the speed-up of a matrix product by Cannon's algorithm (slide 17)")
    _add_kernel(commands, "linpack", "predict the speed-up of solving a dense system of equations (slide 19)")
    _add_fit(commands)
    _add_predict(commands)
    _add_hpl(commands)
    _add_shares(commands)
    _add_top500(commands)
    return parser


def _add(commands: Subcommands, name: str, summary: str) -> argparse.ArgumentParser:
    """Add a subcommand with its lines of `_EXAMPLES`."""
    lines = _EXAMPLES.replace("\\\n", "\\").splitlines()[1:]
    fitting = [line for line in lines if line.split()[1] == name] or [lines[0].replace("linpack", name)]
    example = "example:\n" + "\n".join(fitting).replace("\\", "\\\n")
    parser = add_subcommand(commands, name, summary, example, build=_build)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_kernel(commands: Subcommands, name: str, summary: str) -> None:
    parser = _add(commands, name, summary)
    parser.add_argument("--n", metavar="N", type=_parse_number, required=True, help="problem size")
    _add_cluster(parser)
    _add_word(parser)
    _add_curve(parser)


def _add_fit(commands: Subcommands) -> None:
    summary = "fit the exchanged bytes of recorded runs, and predict the speed-up of each region"
    parser = _add(commands, "fit", summary)
    add = parser.add_argument
    add("runs", nargs="+", metavar="N:PROFILE", type=_parse_run, help="problem size, and a profile or recording")
    add("--operations", action="append", metavar="[REGION:]FORMULA", required=True, help="#op, the operations of the "
        "program or of REGION, as a formula of n such as '2*n**3'")  # fmt: skip
    add("--data", metavar="FORMULA", required=True, help="#b, bytes of data involved, as a formula of n")
    rename_option(parser, "--between", "--by")
    _add_cluster(parser)
    add("--n", metavar="N", type=_parse_number, help="problem size to predict for (default: the largest problem "
        "size of the runs)")  # fmt: skip
    add("--by", dest="between", choices=(HOSTS, RANKS), type=lambda given: given.removesuffix("s"), help="count bytes "
        "exchanged between hosts, or between ranks (default: host, if there are several hosts)")  # fmt: skip
    _add_curve(parser)


def _add_predict(commands: Subcommands) -> None:
    summary = "predict run times, and the call that stops scaling first, from recorded runs"
    parser = _add(commands, "predict", summary)
    add = parser.add_argument
    add("runs", nargs="+", metavar="[N:]PROFILE", type=_parse_sized_run, help="profiles or recordings, each after "
        "its problem size N, of runs with two numbers of processes or more; with --delays, with three numbers above 1 "
        "or more",
    )  # fmt: skip
    add("--delays", metavar="FILE", type=Path, help="predict from delays of this network, which ibprof-latency "
        "measured with --lengths 0,1K:1M:x4 (default: predict from waiting and transfer in the profiles)")  # fmt: skip
    add("--operations", metavar="FORMULA", help="with --delays: operations as a formula of n, in any unit")
    add_unit(parser)
    add("--fabric", metavar="LST", type=Path, help="fabric: messages share links along its forwarding tables "
        "(default: messages share no links)")  # fmt: skip
    add("--placement", metavar="HOW", help="packed, spread or random:SEED (default: packed)")
    add("--slots", metavar="N", type=count_in(1), help="ranks on a host (default: as few as possible)")
    add("--scaling", choices=(STRONG, WEAK), help="strong: the same problem for all numbers of processes; weak: the "
        "work per process of the smallest run (default: as in the runs; with --delays, strong)")  # fmt: skip
    add(
        "--n", metavar="N", type=_parse_number, help="problem size of strong scaling (default: size of the largest run)"
    )
    _add_curve(parser)


def _add_hpl(commands: Subcommands) -> None:
    summary = "predict the performance of the Linpack benchmark by HPL's own model"
    parser = _add(commands, "hpl", summary)
    add = parser.add_argument
    add("--n", metavar="N", type=_parse_number, required=True, help="order of the matrix")
    add("--nb", metavar="NB", type=_parse_number, default=float(BLOCK), help=f"block size (default: {BLOCK})")
    add("--grid", metavar="PxQ", type=_parse_grid, required=True, help="rows and columns of processes")
    add("--rate", metavar="FLOPS[:FLOPS]", type=_parse_range, required=True, help="measured rate of a process in "
        "matrix products, in Flop/s; or the smallest and the largest rate")  # fmt: skip
    add("--bandwidth", metavar="B", type=_parse_number, help="bandwidth of a process in bytes/s; with --slots, "
        "bandwidth of a node")  # fmt: skip
    add("--slots", metavar="N", type=count_in(1), help="processes on a node, which share its adapter and memory")
    rename_option(parser, "--share", "--slots")
    add("--memory", metavar="B", type=_parse_number, help="memory rate of a node in bytes/s, as measured by STREAM on "
        "all processors (default: no limit)")  # fmt: skip
    add("--latency", metavar="S", type=number_in(0, 1), default=2e-6, help="latency of a message, in s (default: 2e-6)")
    add("--delays", metavar="FILE", type=Path, help="use delays of ibprof-latency in place of --bandwidth and "
        "--latency")  # fmt: skip
    add_unit(parser)


def _add_shares(commands: Subcommands) -> None:
    summary = "predict the performance of processing units with different peaks or work (slides 7 to 11)"
    add = _add(commands, "shares", summary).add_argument
    for option, meaning in (
        ("operations", "#op, operations in Flop"), ("data", "#b, bytes of data involved"),
        ("exchanged", "#x, bytes exchanged"),
    ):  # fmt: skip
        add(f"--{option}", metavar="X", type=_parse_number, required=True, help=meaning)
    add("--bandwidth", metavar="B", type=_parse_number, required=True, help="bandwidth of the network, in bytes/s")
    add("--peaks", metavar="X,X,...", type=_parse_numbers, required=True, help="peak of each unit, in Flop/s")
    add("--operation-shares", metavar="X,X,...", type=_parse_numbers, help="omega_k, each unit's share of #op "
        "(default: equal)")  # fmt: skip
    add("--data-shares", metavar="X,X,...", type=_parse_numbers, help="delta_k, each unit's share of #b (default: as "
        "omega_k)")  # fmt: skip


def _add_top500(commands: Subcommands) -> None:
    summary = "compute the effective bandwidth of systems in Linpack (slide 22)"
    parser = _add(commands, "top500", summary)
    parser.add_argument("path", metavar="LIST.csv", type=Path, help="list with the columns Rmax and Nmax; optional: "
                        "Rank, Name and Cores")  # fmt: skip
    parser.add_argument("--unit", choices=UNITS, type=str.lower, help="unit of Rmax (default: as in the header)")
    _add_word(parser)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--l-peak", metavar="FLOPS", type=_parse_number, required=True, help="peak of a process, in Flop/s")
    add("--bandwidth", metavar="B", type=_parse_number, help="bandwidth of the network, in bytes/s")
    add("--fabric", metavar="LST", type=Path, help="use the bandwidth of this fabric's slowest host link")
    add("--delays", metavar="FILE", type=Path, help="use the bandwidth of the slowest process in FILE, "
        "as measured by ibprof-latency with --lengths 0,1M")  # fmt: skip
    add_unit(parser)


def _add_word(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--word", metavar="B", type=_parse_number, default=WORD, help="bytes of a number (default: 8)")


def _add_curve(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--processes", metavar="P,P,...", type=_parse_counts, help="numbers of processes to predict for (default: "
        "powers of two)")  # fmt: skip
    add("--figure", metavar="FILE", type=parse_figure, help="draw the curve (png, svg or pdf)")


def _parse_numbers(given: str) -> list[float]:
    return [_parse_number(each) for each in given.split(",")]


def _parse_grid(given: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,6})x([1-9]\d{0,6})", given, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(f"expected ROWSxCOLUMNS, found {quote_found(given)}")
    return int(found[1]), int(found[2])


def _parse_range(given: str) -> tuple[float, float]:
    low, _, high = given.partition(":")
    ends = _parse_number(low), _parse_number(high or low)
    if ends[0] > ends[1]:
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH, found {quote_found(given)}")
    return ends


def _parse_counts(given: str) -> list[int]:
    counts = _parse_numbers(given)
    if any(each != int(each) for each in counts):
        raise argparse.ArgumentTypeError(f"expected whole numbers, found {quote_found(given)}")
    return sorted({int(each) for each in counts})


def _parse_sized_run(given: str) -> tuple[float | None, Path]:
    size, colon, path = given.partition(":")
    has_size = re.fullmatch(r"[0-9.]+(e[+-]?[0-9]+)?", size, re.ASCII | re.IGNORECASE)
    return (_parse_number(size), Path(path)) if colon and path and has_size else (None, Path(given))


def _parse_run(given: str) -> tuple[float, Path]:
    size, colon, path = given.partition(":")
    if not (colon and path):
        raise argparse.ArgumentTypeError(f"expected N:PROFILE, found {quote_found(given)}")
    return _parse_number(size), Path(path)
