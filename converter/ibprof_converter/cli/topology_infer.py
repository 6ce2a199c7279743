# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology infer` and `join`: a topology from delays; the inside of hosts put into it."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable
from io import StringIO
from math import isnan, nan
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ibprof.errors import UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.topology_methods import add_bufe_epsilon, add_method_arguments, apply_method, read_processes
from ibprof_converter.cli.topology_view import add_position_arguments, find_space, write_page_of, write_positions
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name
from ibprof_converter.latency.files.atomic_write import write_atomically
from ibprof_converter.latency.files.pair_files import HEADER
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.inferred_graph import describe_topology, write_dot, write_tgf
from ibprof_converter.outputs.lst import write_fdbs, write_lst
from ibprof_converter.outputs.rows import link_rows
from ibprof_converter.outputs.slurm import compress, write_topology
from ibprof_converter.topology.infer.bufe import infer_bufe
from ibprof_converter.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_converter.topology.infer.pair_delays import PairDelays, take_pair_delays
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.model.joined_models import join_models
from ibprof_converter.topology.model.synthetic_fabric import make_fabric
from ibprof_converter.topology.space.vertex_positions import VertexPositions
from ibprof_converter.traffic.hosts import NO_HOST, find_hosts
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.traffic_data import ALL

_ENDINGS = (".tgf", ".dot", ".json", ".lst", ".conf", ".html", ".csv")
_SHOWN_SWITCHES = 40
_WEAK = 0.5
_FOUR_LANES = 4

_INFER_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.tgf -o topology.conf
  ibprof-topology infer delays.nc --html view.html
  ibprof-topology infer matrix.csv --method bufe --epsilon 0.1 --json
  ibprof-topology infer delays.nc --again pairs.csv
  mpirun ibprof-latency measure --pairs pairs.csv --resume -o delays.nc

-o by the name's end: .tgf, .dot, .json; .lst, a fabric for ibprof-layout and the others, with routes that are
modelled as shortest ones in the .fdbs beside it; .conf, Slurm's topology.conf; .html, the topology in space; .csv, its
positions there: ibprof-view topology.lst TRAFFIC --node-data positions.csv -o view.html
"""

_JOIN_EXAMPLES = """\
example:
  ibprof-topology join hosts.csv cores.csv --external far -o cluster.tgf

cores.csv has the delays between the cores of one host, and between these and one core of another host, `far`.
"""


def add_commands(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the commands `infer` and `join`."""
    parser = commands.add_parser(
        "infer",
        help="hosts, switches and links from delays",
        description="Infer hosts, switches and links from the delays between hosts: all pairs of them.",
        epilog=_INFER_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_infer)
    parser.add_argument(
        "delays", metavar="DELAYS", help="of ibprof-latency (.nc), clustbench, or a matrix (.csv, .npy)"
    )
    add_method_arguments(parser)
    parser.add_argument("--again", metavar="FILE", type=Path, help="pairs to measure again: sender,receiver")
    add_outputs(parser)
    parser = commands.add_parser(
        "join",
        help="a model of hosts and one of what is inside them",
        description="Put the model of a host's inside in the place of each host (Bufe, section 2.7).",
        epilog=_JOIN_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_join)
    parser.add_argument("outer", metavar="HOSTS", help="delays between hosts")
    parser.add_argument("inner", metavar="CORES", help="delays between cores of one host and a core of another")
    parser.add_argument("--external", metavar="NAME", required=True, help="the core of another host, in CORES")
    parser.add_argument("--core", metavar="NAME", help="the core that HOSTS was measured from (default: the nearest)")
    parser.add_argument("--method", choices=("auto", "bufe"), default="bufe", help="for both (bufe)")
    add_bufe_epsilon(parser)
    add_outputs(parser)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a topology goes."""
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="see below")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, action="append", dest="output", help="the topology in space: -o FILE.html"
    )
    add_position_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the topology as JSON on stdout")
    parser.add_argument(
        "--speed", metavar="NAME", type=str.upper, choices=("SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR"),
        help="of all links of a .lst, 4x; delays do not tell it (default: unknown)",
    )  # fmt: skip


def _infer(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    delays = read_processes(arguments.delays)
    inferred, values = apply_method(arguments, delays)
    topology = inferred.topology
    write_outputs(arguments, topology, f"inferred from {arguments.delays} by {topology.method}")
    if arguments.again:
        _write_again(arguments.again, values, inferred)
    if arguments.json:
        document = describe_topology(topology)
        if values is not None:
            document |= {"statistic": values.statistic, "length": values.length}
        print(json.dumps(document | {"pairs_to_measure_again": len(inferred.again)}, indent=1))
        return
    _show(sys.stdout, topology, values, len(inferred.again))


def _join(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    models = []
    for name in (arguments.outer, arguments.inner):
        values = take_pair_delays(read_processes(name))
        if arguments.method == "bufe":
            models.append(infer_bufe(values.seconds, values.hosts, arguments.epsilon))
        else:
            models.append(infer(values, InferenceEffort(replicates=0)).topology)
    for given in (arguments.external, arguments.core):
        if given is not None and given not in models[1].hosts:
            raise UsageError(f"{arguments.inner} has no core {given!r}, but {', '.join(models[1].hosts[:10])}")
    topology = join_models(models[0], models[1], arguments.external, arguments.core)
    write_outputs(arguments, topology, f"joined from {arguments.outer} and {arguments.inner}")
    if arguments.json:
        print(json.dumps(describe_topology(topology), indent=1))
    else:
        _show(sys.stdout, topology, None, 0)


def write_outputs(arguments: argparse.Namespace, topology: InferredTopology, remark: str) -> None:
    """Write a topology into the files that were asked for.

    Raises:
        UsageError: a fabric cannot be made of it.
        OSError: a file cannot be written.
    """
    for path in arguments.output:
        if path.suffix in _WRITERS:
            _WRITERS[path.suffix](path, topology, remark, _gbps(arguments.speed))
    in_space = [path for path in arguments.output if path.suffix in _IN_SPACE]
    if in_space:
        space = find_space(topology, arguments)
        for path in in_space:
            _IN_SPACE[path.suffix](path, topology, remark, space)


def _gbps(speed: str | None) -> float:
    return data_rate_gbps(_FOUR_LANES, speed_of_name(speed)) if speed else nan


def _write_text(path: Path, write: Callable[[TextIO], None]) -> None:
    text = StringIO()
    write(text)
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _write_fabric(path: Path, topology: InferredTopology, remark: str, gbps: float) -> None:
    made = make_fabric(topology, str(path), gbps)
    told = "speeds are not known" if isnan(gbps) else f"{gbps:g} Gb/s is an assumption"
    _write_text(path, lambda file: write_lst(file, made.fabric, f"{remark}; GUIDs are made up; {told}"))
    _write_text(path.with_suffix(".fdbs"), lambda file: write_fdbs(file, made.tables))
    print(f"{path}: routes in {path.with_suffix('.fdbs')} are modelled, as shortest ones", file=sys.stderr)


def _write_slurm(path: Path, topology: InferredTopology, remark: str, _gbps: float) -> None:
    fabric = make_fabric(topology, str(path)).fabric
    layouts = lay_out([fabric])
    names = find_hosts([fabric])
    host_of = {
        f"0x{int(fabric.node_guid[node]):016x}": names.name[host]
        for node, host in enumerate(names.of_node[0].tolist())
        if host != NO_HOST
    }
    nothing = Loads((np.zeros((fabric.links, 2, 1), np.uint64),), ((ALL, ALL),), 0, 0, 0, {})
    rows = list(link_rows([fabric], layouts, nothing))
    _write_text(path, lambda file: write_topology(file, rows, host_of, remark))


_WRITERS: dict[str, Callable[[Path, InferredTopology, str, float], None]] = {
    ".tgf": lambda path, topology, _remark, _gbps: _write_text(path, lambda file: write_tgf(file, topology)),
    ".dot": lambda path, topology, _remark, _gbps: _write_text(path, lambda file: write_dot(file, topology)),
    ".json": lambda path, topology, _remark, _gbps: _write_text(
        path, lambda file: print(json.dumps(describe_topology(topology), indent=1), file=file)
    ),
    ".lst": _write_fabric,
    ".conf": _write_slurm,
}


_IN_SPACE: dict[str, Callable[[Path, InferredTopology, str, VertexPositions], None]] = {
    ".html": write_page_of,
    ".csv": lambda path, topology, _remark, space: write_positions(path, topology, space),
}


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything is computed."""
    inputs = {Path(name).resolve() for name in vars(arguments).values() if isinstance(name, str | Path)}
    for path in arguments.output:
        if path.suffix not in _ENDINGS:
            raise UsageError(f"-o {path}: expected a name that ends with {', '.join(_ENDINGS)}")
        if path.resolve() in inputs:
            raise UsageError(f"-o {path}: this is also an input")


def _write_again(path: Path, values: PairDelays | None, inferred: Inference) -> None:
    """Write the pairs to measure again, both ways; a host's name stands for all of its processes."""
    pairs = [(values.hosts[a], values.hosts[b]) for a, b in inferred.again.tolist()] if values else []
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(pair for a, b in pairs for pair in ((a, b), (b, a)))
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _show(file: TextIO, topology: InferredTopology, values: PairDelays | None, again: int) -> None:
    """Say what was found."""
    measured = f", {values.statistic.replace('_', ' ')} for {values.length} bytes" if values else ""
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from it"
    levels = f", {count} levels" if (count := _count_levels(topology)) else ""
    print(
        f"{len(topology.hosts)} hosts, {len(topology.switches)} switches{levels}, {len(topology.edge)} "
        f"{'arcs' if topology.directed else 'links'} by {topology.method}{measured}{noise}",
        file=file,
    )
    if topology.overhead_seconds:
        print(f"each message costs {topology.overhead_seconds * 1e6:.4g} us beside its way", file=file)
    if topology.switches:
        _show_switches(file, topology)
    weak = np.flatnonzero(topology.support < _WEAK)
    for edge in weak[:10].tolist():
        a, b = (topology.names[end] for end in topology.edge[edge])
        print(printable(f"weak: {a} to {b}, support {topology.support[edge]:.2f}"), file=file)
    if again:
        print(f"measure again: {again} pairs (--again FILE writes them)", file=file)
    for text in topology.notes:
        print(printable(f"note: {text}"), file=file)
    for text in topology.unknown:
        print(printable(f"cannot be told: {text}"), file=file)


def _show_switches(file: TextIO, topology: InferredTopology) -> None:
    hosts = len(topology.hosts)
    own: list[list[str]] = [[] for _ in topology.switches]
    linked: list[list[str]] = [[] for _ in topology.switches]
    for (a, b), latency in zip(np.sort(topology.edge, axis=1).tolist(), topology.latency_seconds, strict=True):
        if a < hosts <= b:
            own[b - hosts].append(topology.hosts[a])
        elif a >= hosts:
            linked[a - hosts].append(f"{topology.names[b]} ({latency * 1e6:.3g} us)")
            linked[b - hosts].append(f"{topology.names[a]} ({latency * 1e6:.3g} us)")
    for number, name in enumerate(topology.switches[:_SHOWN_SWITCHES]):
        parts = [compress(own[number])] if own[number] else []
        if linked[number]:
            more = f" and {len(linked[number]) - 8} more" if len(linked[number]) > 8 else ""
            parts.append(f"links to {', '.join(linked[number][:8])}{more}")
        print(printable(f"  {name}: {'; '.join(parts)}"), file=file)
    if len(topology.switches) > _SHOWN_SWITCHES:
        print(f"  and {len(topology.switches) - _SHOWN_SWITCHES} more", file=file)


def _count_levels(topology: InferredTopology) -> int:
    """Give how many switches are above a host at most, on the way to the middle; 0 for what is no tree."""
    if not topology.switches or len(topology.edge) != topology.vertices - 1:
        return 0
    degree = np.bincount(topology.edge.ravel(), minlength=topology.vertices)
    edge, rounds = topology.edge, 0
    while len(edge):
        leaves = degree[edge] == 1
        drop = leaves.any(axis=1)
        if not drop.any():
            return 0
        edge = edge[~drop]
        degree = np.bincount(edge.ravel(), minlength=topology.vertices)
        rounds += 1
    return rounds
