# SPDX-License-Identifier: Apache-2.0
"""`ibprof-scaling`: how many processes are worth it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ibprof.cli.command import run_command
from ibprof.errors import InconsistentError, UsageError, quote_found
from ibprof.load import load_profile
from ibprof_converter.cli.printing import print_captured, print_json
from ibprof_converter.scaling import scaling_document as document
from ibprof_converter.scaling import scaling_text as text
from ibprof_converter.scaling.analytic_kernels import KERNELS, WORD
from ibprof_converter.scaling.formula import parse_formula
from ibprof_converter.scaling.recorded_exchange import HOSTS, RANKS, choose_ends, sum_exchange
from ibprof_converter.scaling.scaling_model import Cluster, find_optimum, share_work
from ibprof_converter.scaling.scaling_study import study_runs
from ibprof_converter.scaling.top500 import UNITS, read_systems

NAME = "ibprof-scaling"

_EXAMPLES = """\
examples:
  ibprof-scaling linpack --n 10000 --l-peak 8e9 --bandwidth 1.5e9
  ibprof-scaling matrix --n 40000 --l-peak 8e9 --bandwidth 1.5e9 --figure matrix.png
  ibprof-scaling fit 512:run4.otf2 512:run9.otf2 512:run16.otf2 --operations '2*n**3' --data '16*n**2' \\
      --l-peak 8e9 --fabric ibdiagnet.lst --json
  ibprof-scaling shares --operations 1e12 --data 1e9 --exchanged 2e8 --bandwidth 1.5e9 --peaks 8e9,8e9,4e9
  ibprof-scaling top500 list.csv --unit TFlop/s
"""

_MOST_PREDICTED = 1 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-scaling`."""
    return run_command(NAME, _scale, argv)


def _scale(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_args(argv)
    arguments.run(arguments)


# -- commands ----------------------------------------------------------------------------------------------------------


def _run_kernel(arguments: argparse.Namespace) -> None:
    cluster = Cluster(arguments.l_peak, _find_bandwidth(arguments))
    kernel = KERNELS[arguments.command](arguments.n, cluster, arguments.word)
    most = find_optimum(kernel.exact, cluster).p_max
    processes = arguments.processes or _powers_of_two(2 * most if math.isfinite(most) else 4096)
    if arguments.figure:
        from ibprof_converter.scaling.scaling_picture import draw_kernel  # noqa: PLC0415  (slow to import)

        draw_kernel(arguments.figure, kernel, cluster)
    _print(document.describe_kernel(kernel, cluster, processes), text.print_kernel, arguments.json)


def _run_shares(arguments: argparse.Namespace) -> None:
    try:
        shares = share_work(
            arguments.operations,
            arguments.data,
            arguments.exchanged,
            arguments.bandwidth,
            arguments.peaks,
            arguments.operation_shares,
            arguments.data_shares,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    _print(document.describe_shares(shares), text.print_shares, arguments.json)


def _run_top500(arguments: argparse.Namespace) -> None:
    systems = read_systems(arguments.list, arguments.unit, arguments.word)
    _print(document.describe_systems(systems), text.print_systems, arguments.json)


def _run_fit(arguments: argparse.Namespace) -> None:
    cluster = Cluster(arguments.l_peak, _find_bandwidth(arguments))
    operations, regions = _read_operations(arguments.operations)
    data = parse_formula("--data", arguments.data)
    profiles = [(size, load_profile(path)) for size, path in arguments.runs]
    between = arguments.between or choose_ends([profile for _, profile in profiles])
    runs = [sum_exchange(profile, size, between) for size, profile in profiles]
    size = arguments.n or max(size for size, _ in profiles)
    processes = arguments.processes or _powers_of_two(4 * max(run.processes for run in runs))
    try:
        study = study_runs(runs, cluster, operations, data, size, regions, processes)
    except ValueError as error:
        raise InconsistentError(f"{', '.join(run.name for run in runs)}: {error}") from error
    if arguments.figure:
        from ibprof_converter.scaling.scaling_picture import draw_study  # noqa: PLC0415  (slow to import)

        draw_study(arguments.figure, study)
    _print(document.describe_study(study, between), text.print_study, arguments.json)


def _find_bandwidth(arguments: argparse.Namespace) -> float:
    given = [each for each in (arguments.bandwidth, arguments.fabric, arguments.delays) if each is not None]
    if len(given) != 1:
        raise UsageError("give one of --bandwidth, --fabric and --delays")
    if arguments.bandwidth is not None:
        return float(arguments.bandwidth)
    from ibprof_converter.scaling.network_bandwidth import slowest_host_link, slowest_process  # noqa: PLC0415  (slow to import)

    return slowest_host_link(arguments.fabric) if arguments.fabric else slowest_process(arguments.delays)


def _read_operations(given: Sequence[str]) -> tuple[Callable[[float], float], dict[str, Callable[[float], float]]]:
    """Tell the whole's formula from those of regions, `REGION:FORMULA`; without the former it is their sum."""
    regions = {
        name: parse_formula("--operations", formula)
        for name, colon, formula in (each.rpartition(":") for each in given)
        if colon
    }
    whole = [parse_formula("--operations", each) for each in given if ":" not in each]
    if len(whole) > 1:
        raise UsageError("--operations: expected one formula for the whole, and others as REGION:FORMULA")
    return whole[0] if whole else lambda n: sum(of_size(n) for of_size in regions.values()), regions


def _print(result: dict[str, Any], show: Callable[[Console, dict[str, Any]], None], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    print_captured(lambda console: show(console, result))


def _powers_of_two(end: float) -> list[int]:
    last = min(max(end, 2), _MOST_PREDICTED)
    return [1 << power for power in range(int(math.log2(last)) + 1)]


# -- arguments ---------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="How many processes are worth it: speed-up, half-peak and maximum of an application on a cluster, "
        "by the model of Kredel et al. (ISC'13), with communication as computed or as recorded.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], None], summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=_example_of(name),
            formatter_class=raw,
        )
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="the same numbers for programs")
        return command

    for name, summary in (
        ("scalar", "scalar product of two vectors (slide 15)"),
        ("matrix", "matrix product by Cannon's algorithm (slide 17)"),
        ("linpack", "solution of a dense system of equations (slide 19)"),
    ):
        kernel = add(name, _run_kernel, summary)
        kernel.add_argument("--n", metavar="N", type=_positive, required=True, help="size of the problem")
        _add_cluster(kernel)
        _add_word(kernel)
        _add_curve(kernel)
    fit = add("fit", _run_fit, "fit what recordings exchanged, and predict speed-up by region")
    fit.add_argument(
        "runs", nargs="+", metavar="N:PROFILE", type=_run, help="a profile or recording, behind its problem's size"
    )
    fit.add_argument(
        "--operations",
        action="append",
        metavar="[REGION:]FORMULA",
        required=True,
        help="#op as a formula of n, such as '2*n**3'; of one region with its name in front",
    )
    fit.add_argument("--data", metavar="FORMULA", required=True, help="#b, bytes of data involved, as a formula of n")
    _add_cluster(fit)
    fit.add_argument("--n", metavar="N", type=_positive, help="size to predict for (default: the largest measured)")
    fit.add_argument(
        "--between",
        choices=(HOSTS, RANKS),
        help="count what passes between hosts, or between ranks (default: hosts, if there are several)",
    )
    _add_curve(fit)
    shares = add("shares", _run_shares, "the general case: units that are not alike (slides 7 to 11)")
    for option, unit in (("operations", "Flop"), ("data", "bytes"), ("exchanged", "bytes"), ("bandwidth", "bytes/s")):
        shares.add_argument(f"--{option}", metavar="X", type=_positive, required=True, help=unit)
    shares.add_argument("--peaks", metavar="X,X,...", type=_positives, required=True, help="of each unit, in Flop/s")
    shares.add_argument("--operation-shares", metavar="X,X,...", type=_positives, help="omega_k (default: equal)")
    shares.add_argument("--data-shares", metavar="X,X,...", type=_positives, help="delta_k (default: as operations)")
    top500 = add("top500", _run_top500, "the bandwidth that systems got in Linpack (slide 22)")
    top500.add_argument("list", metavar="LIST.csv", type=Path, help="with columns Rmax, Nmax, and Rank, Name, Cores")
    top500.add_argument("--unit", choices=UNITS, type=str.lower, help="of Rmax (default: as the header says)")
    _add_word(top500)
    return parser


def _example_of(command: str) -> str:
    lines = _EXAMPLES.replace("\\\n", "\\").splitlines()[1:]
    fitting = [line for line in lines if line.split()[1] == command] or [
        lines[0].replace("linpack", command),
    ]
    return "example:\n" + "\n".join(fitting).replace("\\", "\\\n")


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--l-peak", metavar="FLOPS", type=_positive, required=True, help="of a process, in Flop/s")
    parser.add_argument("--bandwidth", metavar="B", type=_positive, help="of the network, in bytes/s")
    parser.add_argument(
        "--fabric", metavar="LST", type=Path, help="in place of --bandwidth: the slowest link of a host in this fabric"
    )
    parser.add_argument(
        "--delays",
        metavar="FILE",
        type=Path,
        help="in place of --bandwidth: the slowest process by what ibprof-latency measured, with --lengths 0,1M",
    )


def _add_word(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--word", metavar="B", type=_positive, default=WORD, help="bytes of a number (default: 8)")


def _add_curve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", metavar="P,P,...", type=_counts, help="to predict for (default: powers of two)")
    parser.add_argument("--figure", metavar="FILE", type=Path, help="draw the curve (png, svg or pdf)")


def _positive(given: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {quote_found(given)}")
    return value


def _positives(given: str) -> list[float]:
    return [_positive(each) for each in given.split(",")]


def _counts(given: str) -> list[int]:
    counts = [_positive(each) for each in given.split(",")]
    if any(each != int(each) for each in counts):
        raise argparse.ArgumentTypeError(f"expected whole numbers, found {quote_found(given)}")
    return sorted({int(each) for each in counts})


def _run(given: str) -> tuple[float, Path]:
    size, colon, path = given.partition(":")
    if not (colon and path):
        raise argparse.ArgumentTypeError(f"expected N:PROFILE, found {quote_found(given)}")
    return _positive(size), Path(path)
