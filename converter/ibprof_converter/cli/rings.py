# SPDX-License-Identifier: Apache-2.0
"""`ibprof rings`: report hops of NCCL's rings between leaf switches, and find a better rank order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_result
from ibprof.errors import UsageError
from ibprof_converter.analysis.output_files import check_files, open_output
from ibprof_converter.analysis.pipeline_options import FabricOptions
from ibprof_converter.cli.input_arguments import add_interfaces_argument
from ibprof_converter.cli.place import placement_csv, torchrun_script

NAME = "ibprof rings"

_EXAMPLE = """\
examples:
  NCCL_GRAPH_DUMP_FILE=graph.xml NCCL_TOPO_DUMP_FILE=topo.xml torchrun ... train.py
  ibprof rings ibdiagnet.lst --graph graph.xml --topology topo.xml --hosts hosts.txt
  ibprof rings ibdiagnet.lst --log slurm-17.out --torchrun launch.sh
"""


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof rings`."""
    arguments = _parser().parse_args(argv)
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof_converter.analysis.pipeline_stages import read_routed_fabric  # noqa: PLC0415
    from ibprof_converter.analysis.ring_crossings import follow_rings  # noqa: PLC0415
    from ibprof_converter.traffic.hostlists import read_listed_hosts  # noqa: PLC0415
    from ibprof_converter.traffic.interfaces import describe_interfaces  # noqa: PLC0415
    from ibprof_converter.traffic.nccl_topology import (  # noqa: PLC0415
        find_ring_nets,
        read_nccl_graphs,
        read_nccl_log,
        read_nccl_topology,
    )

    options = FabricOptions(tuple(arguments.fabric), interfaces=arguments.interfaces)
    if (arguments.graph is None) == (not arguments.log):
        raise UsageError("expected either --graph FILE or --log FILE...")
    if arguments.log and arguments.topology:
        raise UsageError("--topology: only with --graph, because logs already name the network devices")
    read = (arguments.graph, arguments.topology, arguments.hosts, *arguments.log)
    check_files((*options.files(), *filter(None, read)), {"-o": arguments.output, "--torchrun": arguments.torchrun})
    if arguments.log:
        nets = read_nccl_log(arguments.log)
    else:
        topology = read_nccl_topology(arguments.topology) if arguments.topology else None
        nets = find_ring_nets(read_nccl_graphs(arguments.graph), topology)
    hosts = [each.name for each in read_listed_hosts(arguments.hosts)] if arguments.hosts else []
    fabric = read_routed_fabric(options)
    report = follow_rings(fabric, nets, list(dict.fromkeys(hosts)))
    ranks = [name for name in report.better for _ in range(report.ranks_per_host)]
    for path, write in ((arguments.output, placement_csv), (arguments.torchrun, torchrun_script)):
        if path is not None:
            with open_output(path) as file:
                file.write(write(ranks))
    lines = [*describe_interfaces(fabric.fabrics), *report.describe()]
    print_result(report.as_json(), lines, arguments.json)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        NAME,
        "Follow the rings of NCCL's channels from host to host, and report the leaf switches that the rings cross. "
        "With --graph, ibprof assumes that all hosts have the channels of the file.",
        _EXAMPLE,
    )
    parser.add_argument(
        "fabric", nargs="+", metavar="LST", help="the fabric: dumps, folders, or synthetic; one LST for each rail"
    )
    parser.add_argument("--graph", metavar="FILE", type=Path, help="the file that NCCL wrote to NCCL_GRAPH_DUMP_FILE")
    parser.add_argument(
        "--log",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="instead of a graph: output of a job with NCCL_DEBUG=INFO; may be repeated, for example for each host",
    )
    parser.add_argument(
        "--topology",
        metavar="FILE",
        type=Path,
        help="the file of NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE, which names network devices",
    )
    parser.add_argument(
        "--hosts",
        metavar="FILE",
        type=Path,
        help="hosts in the order of ranks: a hostfile, a rank file, a Slurm list, or a script of --torchrun "
        "(default: the hosts in the logs, else all hosts)",
    )
    add_interfaces_argument(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write the better order as placement.csv: rank,host"
    )
    parser.add_argument(
        "--torchrun", metavar="FILE", type=Path, help="write the better order as a script to run on each host"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser
