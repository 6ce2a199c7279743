# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology`: infer topologies from measured delays, without dumps of the fabric."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser, rename_option
from ibprof.errors import need_lab
from ibprof_converter.cli.arguments import (
    Subcommands,
    add_subcommand,
    add_subcommands,
    count_in,
    number_in,
    parse_positive,
    parse_share,
    type_of,
)
from ibprof_lab.cli.lab_commands import add_unit, run_on_ranks
from ibprof_lab.lab_choices import (
    CORRECTIONS,
    GAMMA,
    LEAST_DELAY,
    LEAST_SPEED,
    METHOD_STATISTICS,
    METHODS,
    POSITION_METHODS,
    SHORTEST,
    UNIQUE,
)
from ibprof_lab.latency.model.typed_quantities import parse_budget, parse_duration, parse_length

NAME = "ibprof-topology"

_EXAMPLES = """\
examples:
  mpirun ibprof-latency measure -o delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.json --html topology.html
  mpirun ibprof-topology throughput topology.json -o topology.lst
  ibprof-layout topology.lst profile.otf2 -o links.csv
  ibprof-topology compare delays.nc plan.dot --fail
"""

_INFER_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.tgf -o topology.conf
  ibprof-topology infer delays.nc --html view.html
  ibprof-topology infer matrix.csv --method bufe --epsilon 0.1 --json
  ibprof-topology infer core-to-core.csv --unit ns
  ibprof-topology infer delays.nc --outliers pairs.csv
  mpirun ibprof-latency measure --pairs pairs.csv --resume -o delays.nc

The extension of FILE in -o FILE selects the format:
  .json, .dot, .tgf  the topology as a graph
  .lst               a fabric for ibprof-layout and other commands; modelled routes (shortest paths) go to a .fdbs
  .conf              Slurm's topology.conf
  .html              a page that shows the topology in space
  .csv               positions in space, for ibprof-view topology.lst TRAFFIC --node-data positions.csv

A link is weak if fewer than 70% of the resampled matrices show it. The first line reports weak links, and hosts that
may have a switch that the topology lacks. In both cases, the exit status is 5, and no .lst or .conf is written, unless
--accept-weak is given.
"""

_INFER_SHOWN = ("--output", "--html", "--json", "--unit", "--length", "--statistic", "--method", "--accept-weak")
"""Options in the short help of `infer`; the next tuple has those of `compare`."""

_COMPARE_SHOWN = ("--fail", "--least", "--output", "--json", "--unit", "--length")

_JOIN_EXAMPLES = """\
example:
  ibprof-topology join hosts.csv cores.csv --external far -o cluster.tgf

cores.csv has the delays between the cores of one host, and from these cores to `far`, a core of another host.
"""

_VIEW_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  ibprof-topology view topology.json -o view.html
  ibprof-topology view delays.nc -o view.html --positions paper --gamma 1

TOPOLOGY is a file of `ibprof-topology infer -o topology.json`, or delays, from which the topology is inferred.
"""

_COMPARE_EXAMPLES = """\
examples:
  ibprof-topology compare delays.nc plan.dot
  ibprof-topology compare delays.nc ibdiagnet2.lst --fail
  ibprof-topology compare topology.json plan.dot -o differences.svg -o differences.dot
  ibprof-topology compare delays.nc plan.dot --length 1M --json

In a plan in DOT, vertices have the names of hosts and switches. Edges have speeds in Gb/s as label or gbps:
  graph plan { n1 -- leaf1 [label=100]; n2 -- leaf1 [label=100]; leaf1 -- spine [label=200] }
"""

_REGRESS_EXAMPLES = """\
examples:
  ibprof-topology regress topology.json delays.nc
  ibprof-topology regress topology.json delays.nc --correct minimum -o latencies.tgf
  ibprof-topology regress ibdiagnet2.lst delays.nc -o latencies.csv
"""

_THROUGHPUT_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json -o measured.lst
  ibprof-report measured.lst profile.otf2

Start a process on each host of the topology. If a host has several processes, its first process measures. The formats
of -o are listed in `ibprof-topology infer --help`.
"""

_DIRECT_LINKS_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json
  mpirun ibprof-topology direct-links measured.json -o corrected.json
  mpirun ibprof-topology direct-links measured.json --between node1 node7

Start a process on each host of the topology. If a host has several processes, its first process measures. If TOPOLOGY
has results of `throughput`, more pairs can be tested. -o writes the topology with the found direct links; its formats
are listed in `ibprof-topology infer --help`.
"""

_REMEASURE_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology remeasure topology.json delays.nc --budget 20%
  ibprof-topology infer delays.nc -o better.json

Outlying pairs, whose delays the topology does not explain, are measured first. Pairs that are measured at the same
time share no switch. A new delay replaces the old delay only if it is lower.
"""

_ALIASES = {"bannikov": "bannikov-salnikov"}
_SPEEDS = ("SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR")

_parse_tolerance = number_in(0, math.nextafter(2, 0))


@command(NAME)
def main(argv: Sequence[str] | None) -> int | None:
    """Run `ibprof-topology`."""
    return run_on_ranks(_parser, argv)


def _build(arguments: argparse.Namespace) -> Callable[[], int | None]:
    need_lab("networkx", "scipy")
    # --help and invalid options need no numpy.
    from ibprof_lab.cli.topology_commands import build_command  # noqa: PLC0415

    return build_command(arguments)


def _parser() -> argparse.ArgumentParser:
    description = "Infer hosts, switches and links from measured delays, without dumps of the fabric."
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_infer(commands)
    _add_join(commands)
    _add_remeasure(commands)
    _add_throughput(commands)
    _add_direct_links(commands)
    _add_compare(commands)
    _add_regress(commands)
    _add_view(commands)
    return parser


def _add_infer(commands: Subcommands) -> None:
    description = "Infer hosts, switches and links from the delays between all pairs of hosts."
    summary = "infer hosts, switches and links from delays"
    parser = add_subcommand(commands, "infer", summary, _INFER_EXAMPLES, description, build=_build, shown=_INFER_SHOWN)
    add = parser.add_argument
    add(
        "delays",
        metavar="DELAYS",
        help="delays: a file of ibprof-latency (.nc) or clustbench, a matrix or one triangle of a matrix (.csv, .npy), "
        "a CSV with a line a,b,latency for each pair, or the output of osu_latency or nccl-tests",
    )
    _add_method_arguments(parser)
    add(
        "--outliers",
        metavar="FILE",
        type=Path,
        help="write the outlying pairs to FILE, for `ibprof-latency measure --pairs`",
    )
    rename_option(parser, "--again", "--outliers")
    add("--accept-weak", action="store_true", help="despite weak links, write a .lst or .conf, and end with status 0")
    _add_outputs(parser)


def _add_join(commands: Subcommands) -> None:
    description = "Replace each host of a topology by the topology inside a host (Bufe, section 2.7)."
    summary = "join a topology of hosts with the topology inside the hosts"
    parser = add_subcommand(commands, "join", summary, _JOIN_EXAMPLES, description, build=_build)
    add = parser.add_argument
    add("outer", metavar="HOSTS", help="delays between hosts")
    add("inner", metavar="CORES", help="delays between the cores of one host, and from these cores to a core of "
        "another host")  # fmt: skip
    add("--external", metavar="NAME", required=True, help="name of the other host's core in CORES")
    add("--core", metavar="NAME", help="name in CORES of the core that measured HOSTS (default: the core "
        "nearest to --external)")  # fmt: skip
    add("--method", choices=("auto", "bufe"), default="bufe", help="method of both inferences (default: bufe)")
    _add_bufe_epsilon(parser)
    add_unit(parser)
    _add_outputs(parser)


def _add_remeasure(commands: Subcommands) -> None:
    description = (
        "Measure some pairs of a known topology again: outlying pairs, and --each N pairs for each link (Bufe, section "
        "2.5)."
    )
    summary = "measure outlying pairs again, on all processes of an MPI job"
    parser = add_subcommand(commands, "remeasure", summary, _REMEASURE_EXAMPLES, description, build=_build)
    add, count, budget = parser.add_argument, count_in(1, 9_999), type_of(parse_budget)
    add("topology", metavar="TOPOLOGY", type=Path, help="topology as JSON, written by `ibprof-topology infer`")
    add("delays", metavar="DELAYS", type=Path, help="delays of ibprof-latency (.nc); new values are written into them")
    add("--each", metavar="N", type=count, default=1, help="number of pairs for each link, of different hosts "
        "if possible (default: 1)")  # fmt: skip
    add("--budget", metavar="BUDGET", type=budget, default=(1.0, None), help="limit: a share of all pairs such as "
        "20%%, or a time such as 30s (default: no limit)")  # fmt: skip
    add("--repetitions", metavar="N", type=count, default=11, help="measure each pair in 3 * N batches (default: 11)")
    add("--schedule", choices=("rounds", "sequential"), default="rounds", help="rounds: disjoint paths at the same "
        "time; sequential: one pair at a time (default: rounds)")  # fmt: skip
    rename_option(parser, "--sequential", "--schedule=sequential")


def _add_throughput(commands: Subcommands) -> None:
    description = (
        "Measure the throughput of links and switches of an inferred topology. Pairs of hosts send at the same time "
        "over a link. Simultaneous measurements share no link (Bufe, section 2.3)."
    )
    summary = "measure the throughput of each link, on all processes of an MPI job"
    parser = add_subcommand(commands, "throughput", summary, _THROUGHPUT_EXAMPLES, description, build=_build)
    _add_stream_arguments(parser)
    parser.add_argument("--pairs-per-link", metavar="N", type=count_in(1, 999_999), help="at most this many pairs send "
                        "over a link at the same time (default: all)")  # fmt: skip
    rename_option(parser, "--pairs", "--pairs-per-link")
    _add_outputs(parser)


def _add_direct_links(commands: Subcommands) -> None:
    description = (
        "Find direct links that delays cannot show, because a path over other links is equally long. Two hosts send "
        "while other hosts fill a link of that path. If the two hosts keep their rate, they have a direct link (Bufe, "
        "section 2.2.1)."
    )
    summary = "find direct links that delays cannot show, on all processes of an MPI job"
    parser = add_subcommand(commands, "direct-links", summary, _DIRECT_LINKS_EXAMPLES, description, build=_build)
    _add_stream_arguments(parser)
    parser.add_argument("--between", metavar="HOST", nargs=2, action="append", default=[], help="try only these two "
                        "hosts; may be repeated (default: a pair of hosts for every two switches that are at least "
                        "two links apart)")  # fmt: skip
    _add_outputs(parser)


def _add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of all throughput measurements: the topology, and the settings of streams."""
    add, count = parser.add_argument, count_in(1, 999_999)
    add("topology", metavar="TOPOLOGY", type=Path, help="topology as JSON, written by `ibprof-topology infer`")
    add("--length", metavar="BYTES", type=type_of(parse_length), default="256K", help="bytes of a message "
        "(default: 256K)")  # fmt: skip
    add("--window", metavar="N", type=count, default=16, help="messages in flight (default: 16)")
    add("--seconds", metavar="S", type=number_in(0.001, 3600), default=0.5, help="seconds of one measurement "
        "(default: 0.5)")  # fmt: skip
    add("--repetitions", metavar="N", type=count, default=3, help="number of repetitions; the highest rate "
        "counts (default: 3)")  # fmt: skip
    add("--dry-run", action="store_true", help="only print the number of rounds, and how long they would take")


def _add_compare(commands: Subcommands) -> None:
    description = (
        "Compare an inferred topology, or delays, with a plan in DOT or with the fabric's own files. Report wrong "
        "cables and slow links."
    )
    summary = "compare with a plan or a fabric's files: find wrong cables and slow links"
    parser = add_subcommand(
        commands, "compare", summary, _COMPARE_EXAMPLES, description, build=_build, shown=_COMPARE_SHOWN
    )
    add = parser.add_argument
    add("inferred", metavar="INFERRED", help="a topology of `infer` (.json, .dot, .tgf, .lst), or delays")
    add("reference", metavar="REFERENCE", help="a plan (.dot), a fabric as for ibprof-layout, or a topology of `infer`")
    add("--rail", metavar="N", type=int, default=0, help="number of the rail, if REFERENCE has several rails "
        "(default: 0)")  # fmt: skip
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_DELAY, help="a link is slow if its delay exceeds "
        "the expected delay by more than SHARE (default: 10%%)")  # fmt: skip
    add("--least-speed", metavar="SHARE", type=parse_share, default=LEAST_SPEED, help="a link is slow if the "
        "delays of long messages show less than SHARE of its speed (default: 50%%)")  # fmt: skip
    add("--fail", action="store_true", help="exit with status 1 if there is a difference")
    add("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="REFERENCE with "
        "the differences in colour (.dot, .svg), or the results (.json)")  # fmt: skip
    add("--json", action="store_true", help="print JSON")
    _add_method_arguments(parser)


def _add_regress(commands: Subcommands) -> None:
    description = (
        "Find the latency of each link of a known topology by ordinary least squares over all delays (Bufe, section "
        "2.4)."
    )
    summary = "compute the latencies of all links by linear regression"
    parser = add_subcommand(commands, "regress", summary, _REGRESS_EXAMPLES, description, build=_build)
    add = parser.add_argument
    add("topology", metavar="TOPOLOGY", help="a topology of `infer` (.json, .dot, .tgf), or a fabric")
    add("delays", metavar="DELAYS", help="delays between the hosts of TOPOLOGY")
    add("--correct", choices=CORRECTIONS, help="transfer time to subtract from the delays. minimum: on the slowest "
        "link of the path; store-and-forward: on all links of the path (default: minimum if throughputs are known, "
        "else none)")  # fmt: skip
    add("--gbps", metavar="G", type=number_in(1e-6, 1e6), help="Gb/s of links without a known throughput")
    add("--paths", choices=(UNIQUE, SHORTEST), default=UNIQUE, help="if a pair has several shortest paths. "
        "unique: leave the pair out; shortest: use one of the paths (default: unique)")  # fmt: skip
    add("--epsilon", metavar="E", type=number_in(0, 1), default=0.01, help="paths are equally long if their lengths "
        "differ by at most this share (default: 0.01)")  # fmt: skip
    add("--length", metavar="BYTES", type=type_of(parse_length), help="bytes of the messages (default: the shortest)")
    add_unit(parser)
    _add_outputs(parser)


def _add_view(commands: Subcommands) -> None:
    description = (
        "Write an HTML file that shows a topology in space. Links are about as long as their delays, and coloured by "
        "delay, probability or support. The file opens in any browser and needs no network."
    )
    summary = "write an HTML file that shows a topology in space"
    parser = add_subcommand(commands, "view", summary, _VIEW_EXAMPLES, description, build=_build)
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology or delays, as described below")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_unit(parser)
    _add_position_arguments(parser)


def _add_method_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--method", type=lambda text: _ALIASES.get(text, text), choices=METHODS, default="auto", help="a model: "
        "levels (nested switches), additive (trees) or direct (networks); auto: the model that explains the delays "
        "best; or a published method: bufe or bannikov-salnikov (default: auto)")  # fmt: skip
    _add_bufe_epsilon(parser)
    add_unit(parser)
    add("--epsilon-s", metavar="E", type=_parse_tolerance, default=0.1, help="bannikov-salnikov: tolerance of formula "
        "1 (default: 0.1)")  # fmt: skip
    add("--epsilon-d", metavar="E", type=_parse_tolerance, default=0.5, help="bannikov-salnikov: the two directions of "
        "a duplex channel differ by at most this share (default: 0.5)")  # fmt: skip
    add("--clique-seconds", metavar="S", type=parse_positive, default=30.0, help="bufe: limit of CPU seconds "
        "(default: 30)")  # fmt: skip
    add("--length", metavar="BYTES", type=type_of(parse_length), help="bytes of the messages (default: the shortest)")
    add("--statistic", choices=METHOD_STATISTICS, help="statistic of a pair's samples (default: median, unless "
        "both directions agree better in another statistic)")  # fmt: skip
    add("--bootstrap", metavar="N", type=count_in(0), default=100, help="number of resampled delay matrices; an edge's "
        "support is the share of matrices that show the edge (default: 100)")  # fmt: skip
    help_ = "time limit of resampling (default: 10s)"
    add("--max-time", dest="seconds", metavar="T", type=type_of(parse_duration), default=10.0, help=help_)
    rename_option(parser, "--seconds", "--max-time")
    add("--seed", metavar="N", type=count_in(0), default=0, help="seed of resampling (default: 0)")


def _add_bufe_epsilon(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", metavar="E", type=_parse_tolerance, default=0.1, help="bufe: relative "
        "tolerance (default: 0.1)")  # fmt: skip


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="file for the "
        "topology; its extension selects the format, see `ibprof-topology infer --help`")  # fmt: skip
    add("--html", metavar="FILE", type=Path, action="append", dest="output", help="same as -o FILE.html: show "
        "the topology in space")  # fmt: skip
    _add_position_arguments(parser)
    add("--json", action="store_true", help="print the topology as JSON")
    add("--speed", metavar="NAME", type=str.upper, choices=_SPEEDS, help="speed of all links in a .lst, with four "
        "lanes per link, since delays do not show speeds (default: unknown)")  # fmt: skip


def _add_position_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--positions", choices=POSITION_METHODS, default=POSITION_METHODS[0], help="method of positions in space. "
        "paper: the published gradient descent, which takes minutes for 200 hosts (default: fast)")  # fmt: skip
    add("--gamma", metavar="G", type=number_in(0, 1), default=GAMMA, help="repulsion between vertices in space "
        f"(default: {GAMMA:g})")  # fmt: skip
