# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout`: write the positions of nodes and the load of each link direction."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_result, print_warnings, show_stages
from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.analysis.output_files import check_files
from ibprof_converter.analysis.pipeline_options import JOB, OPERATION, REGION, SITE, FabricOptions, parse_columns
from ibprof_converter.choices import FABRIC_FORMS, TRAFFIC_FORMS
from ibprof_converter.cli.arguments import call_with_options, count_in, parse_figure, type_of
from ibprof_converter.cli.input_arguments import (
    add_adaptive_argument,
    add_counters_argument,
    add_input_arguments,
    add_provenance_argument,
    add_unrouted_argument,
    check_unrouted,
    fabric_options,
    reading_options,
    refuse_options,
    shorten_paths,
    traffic_options,
)

NAME = "ibprof-layout"

_OF_TRAFFIC = ("panels", "placement", "rails", "nic", "by", "used", "full_scale", "counters", "max_unrouted")
"""Options that need traffic. Options that are invalid with --check and --patterns, as are those of `OUTPUT_FILES`."""

_SAMPLES = 20
"""Default of --samples, the number of random samples of each pattern."""

_MOST_SAMPLES = 100_000

_EXAMPLE = """\
examples:
  ibprof-layout ibdiagnet.lst profile.otf2 -o links.csv
  ibprof-layout rail1.lst rail2.lst profile.otf2 -o links.csv --nodes nodes.csv --png heatmap.png
  ibprof-layout ibdiagnet.lst pattern:all-to-all --png capacity.png -o links.csv
  ibprof-layout ibdiagnet.lst job1.otf2 job2.otf2 -o links.csv
  ibprof-layout rail1/ rail2/ profile.otf2 --by region -o links.parquet --figure regions.pdf --panels region --used
  ibprof-layout --check rail1/ rail2/
  ibprof-layout --patterns ibdiagnet.lst --samples 50
"""

_SHOWN = (
    "--placement",
    "--operation",
    "--region",
    "--site",
    "--check",
    "--patterns",
    "--json",
    "--output",
    "--nodes",
    "--png",
    "--figure",
    "--html",
    "--by",
)
"""Options in the short help."""


@command(NAME)
def main(argv: Sequence[str] | None) -> int:
    """Run `ibprof-layout`."""
    arguments = _parser().parse_intermixed_args(argv)
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof_converter.analysis.loads_outputs import OUTPUT_FILES, LoadsOutputOptions, write_outputs  # noqa: PLC0415
    from ibprof_converter.analysis.pipeline_stages import load_fabric  # noqa: PLC0415

    of_traffic = (*OUTPUT_FILES, *_OF_TRAFFIC)
    if arguments.patterns:
        refuse_options(arguments, (*of_traffic, "check"), "not with --patterns: that option makes the traffic itself")
        samples = _SAMPLES if arguments.samples is None else arguments.samples
        return _measure_patterns(reading_options(arguments, tuple(arguments.inputs)), samples, arguments.json)
    if arguments.check:
        refuse_options(arguments, (*of_traffic, "routes"), "not with --check, which needs neither traffic nor routes")
        return _check(reading_options(arguments, tuple(arguments.inputs)), arguments.json)
    refuse_options(arguments, ("json", "samples"), "only with --check or --patterns; -o and --yaml write the loads")
    fabric, traffic = fabric_options(arguments), traffic_options(arguments, flows_limit=0)
    outputs = call_with_options(LoadsOutputOptions, arguments, only_used=arguments.used)
    outputs.check(traffic.by, len(traffic.names))
    files = (*fabric.files(), *traffic.files())
    check_files(files, outputs.files())
    with show_stages() as progress:
        loads = load_fabric(fabric, traffic, progress)
    print_warnings(NAME, loads.warnings)
    named = (*map(Path, fabric.names), *filter(None, outputs.files().values()))
    write_outputs(loads, outputs, shorten_paths(arguments.provenance, (*files, *named)).apply)
    check_unrouted(loads.find_unrouted(), arguments.max_unrouted)
    return 0


def _check(fabric: FabricOptions, as_json: bool) -> int:
    from ibprof_converter.checks.fabric_check import check_fabric_files, describe_health  # noqa: PLC0415  (for --check)

    with show_stages() as progress:
        health = check_fabric_files(fabric.find_rails(), progress, fabric.interfaces, fabric.host_names)
    print_result(health.as_json(), describe_health(health), as_json)
    if health.trusted:
        return 0
    print_warnings(NAME, ["routes cannot be trusted"])
    return InconsistentError.status


def _measure_patterns(fabric: FabricOptions, samples: int, as_json: bool) -> int:
    # --help does not need these modules, which are slow to import.
    from ibprof.profile.missing_data import accounts_as_json, describe_losses  # noqa: PLC0415
    from ibprof_converter.analysis.pipeline_stages import read_subnets  # noqa: PLC0415
    from ibprof_converter.hotspots.pattern_throughput import describe_patterns, measure_throughput  # noqa: PLC0415
    from ibprof_converter.routing.route_choice import describe_routes, name_routes  # noqa: PLC0415
    from ibprof_converter.traffic.hosts import account_for_fabrics, find_hosts  # noqa: PLC0415
    from ibprof_converter.traffic.interfaces import describe_interfaces  # noqa: PLC0415

    if not 1 <= samples <= _MOST_SAMPLES:
        raise UsageError(f"--samples {samples}: expected a number from 1 to {_MOST_SAMPLES}")
    with show_stages() as progress:
        subnets = read_subnets(fabric)
        patterns = [
            each for rail, subnet in enumerate(subnets) for each in measure_throughput(subnet, rail, samples, progress)
        ]
    fabrics = [subnet.fabric for subnet in subnets]
    accounts = list(account_for_fabrics(fabrics, find_hosts(fabrics, fabric.host_names)))
    chosen = fabrics[0].interfaces
    document = {
        "routes": name_routes(subnets),
        "interfaces": asdict(chosen) if chosen else None,
        "patterns": [each.as_json() for each in patterns],
        "coverage": accounts_as_json(accounts),
    }
    lines = [*describe_interfaces(fabrics), *describe_losses(accounts, complete=chosen is None)]
    lines += [*filter(None, [describe_routes(subnets)]), *describe_patterns(patterns)]
    print_result(document, lines, as_json)
    return 0


def _parser() -> argparse.ArgumentParser:
    description = "Route traffic along the fabric's forwarding tables, and write the load of each link direction."
    parser = make_parser(NAME, description, _EXAMPLE, shown=_SHOWN, details=f"{TRAFFIC_FORMS}\n{FABRIC_FORMS}")
    add_input_arguments(parser, fabric_needed=True)
    add_adaptive_argument(parser)
    add_counters_argument(parser)
    add_unrouted_argument(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="without TRAFFIC: find gaps in the dumps, routes that lead nowhere, and unusual links and switches. "
        "Status 5 if routes cannot be trusted",
    )
    parser.add_argument(
        "--patterns",
        action="store_true",
        help="without TRAFFIC: compute the throughput of host pairs in common patterns, as a share of the link speed. "
        "For the pattern bisect, the result is the effective bisection bandwidth",
    )
    parser.add_argument(
        "--samples",
        metavar="N",
        type=int,
        help=f"with --patterns: number of samples of each pattern (default: {_SAMPLES})",
    )
    parser.add_argument("--json", action="store_true", help="with --check or --patterns: print the result as JSON")
    _add_output_arguments(parser)
    add_provenance_argument(parser)
    return parser


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    outputs = parser.add_argument_group("outputs")

    def add(names: str, metavar: str, text: str, read: Callable[[str], Path] = Path) -> None:
        outputs.add_argument(*names.split(), metavar=metavar, type=read, help=text)

    add("-o --output", "FILE", "links.csv, one row for each link (default: stdout); Parquet if FILE ends with .parquet")
    add("--nodes", "FILE", "nodes.csv, one row for each node; Parquet if FILE ends with .parquet")
    add("--yaml", "FILE", "nodes and links in one YAML file")
    add("--png", "FILE", "a picture with link directions coloured by load; needs pip install 'ibprof[lab]'")
    add("--figure", "FILE", "the same picture for a paper: PNG, SVG or PDF by the ending of FILE", parse_figure)
    outputs.add_argument(
        "--panels",
        choices=(REGION, OPERATION, SITE, JOB),
        help="one picture for each region, operation, site (with --by) or job, all with one scale of colours",
    )
    outputs.add_argument(
        "--full-scale",
        metavar="BYTES",
        type=count_in(1, 2**63 - 1),
        help="bytes of the darkest colour, to compare pictures (default: bytes of the most loaded direction)",
    )
    add("--html", "FILE", "the view of ibprof-view: one page for any browser")
    add("--graphml", "FILE", "a graph for networkx, Gephi, yEd, with an edge for each link direction; needs "
        "pip install 'ibprof[lab]'")  # fmt: skip
    add("--dot", "FILE", "the same graph for Graphviz")
    add("--tgf", "FILE", "the same graph as Trivial Graph Format")
    add(
        "--topology-conf",
        "FILE",
        "Slurm's topology.conf, or topology.yaml if FILE ends with .yaml",
    )
    add("--boxfish", "DIR", "a folder of tables for Boxfish")
    add(
        "--trace",
        "FILE",
        "the run over time for Perfetto or chrome://tracing: sampled calls, and the time line of IBPROF_INTERVAL",
    )
    add("--folded", "FILE", "bytes on the most loaded link direction by region, operation and line, for speedscope")
    outputs.add_argument(
        "--by",
        metavar="region,operation,site",
        type=type_of(parse_columns),
        default=(),
        help="divide the row of each link by region, operation or call site (file.c:LINE), or by several of these",
    )
    outputs.add_argument("--used", action="store_true", help="leave out links without traffic")
