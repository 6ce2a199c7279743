# SPDX-License-Identifier: Apache-2.0
"""The commands of `ibprof-topology` after their arguments are parsed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ibprof.cli.terminal import print_result
from ibprof.errors import THRESHOLD_CROSSED, InconsistentError, UsageError
from ibprof_converter.cli.arguments import fill_options
from ibprof_lab.latency.files.pair_files import write_named_pairs
from ibprof_lab.latency.measure.concurrent_loops import StreamSettings
from ibprof_lab.latency.measure.mpi_job import work_together
from ibprof_lab.topology.infer.inference_methods import (
    InferenceMethod,
    JoinOptions,
    apply_method,
    infer_joined,
    read_host_delays,
    read_or_infer,
)
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.model.topology_files import describe_topology
from ibprof_lab.topology.outputs.compared_topology import (
    COMPARISON_ENDINGS,
    describe_comparison,
    describe_comparison_lines,
    write_comparison,
)
from ibprof_lab.topology.outputs.inferred_page import write_topology_page
from ibprof_lab.topology.outputs.topology_outputs import (
    TopologyOutputs,
    check_files,
    describe_inference,
    describe_inferred,
    describe_positions,
    describe_throughput,
    write_inferred,
)
from ibprof_lab.topology.outputs.vertex_positions import position_vertices
from ibprof_lab.topology.reference.link_regression import (
    RegressOptions,
    describe_regression,
    describe_regression_lines,
    regress_files,
    write_regression_csv,
)
from ibprof_lab.topology.reference.reference_comparison import CompareOptions, compare_files
from ibprof_lab.topology.throughput.direct_links import (
    DirectLinkResults,
    DirectLinkTest,
    add_direct_links,
    describe_direct_links,
    list_direct_links,
)
from ibprof_lab.topology.throughput.link_throughput import ThroughputMeasurement
from ibprof_lab.topology.throughput.pair_jobs import ConcurrentOptions, measure_on_all
from ibprof_lab.topology.throughput.remeasurement import RemeasureOptions, remeasure


def build_command(arguments: argparse.Namespace) -> Callable[[], int | None]:
    """Return the command selected by the arguments.

    Raises:
        UsageError: options are invalid.
    """
    build: dict[str, tuple[Callable[[argparse.Namespace], Any], Callable[[Any], int | None]]] = {
        "infer": (_build_infer_options, _infer),
        "join": (_build_join_options, _join),
        "remeasure": (partial(fill_options, RemeasureOptions), _remeasure),
        "throughput": (_build_throughput_options, _measure_throughput),
        "direct-links": (_build_direct_link_options, _measure_direct_links),
        "compare": (_build_compare_options, _compare),
        "regress": (_build_regress_options, _regress),
        "view": (partial(fill_options, _ViewOptions), _view),
    }
    options, run = build[arguments.command]
    return partial(run, options(arguments))


@dataclass(frozen=True, slots=True)
class _InferOptions:
    """Delays, method and outputs.

    `again` is a file for the pairs to measure again; `accept_weak` accepts unreliable topologies.
    """

    delays: str
    method: InferenceMethod
    outputs: TopologyOutputs
    again: Path | None
    accept_weak: bool


def _build_infer_options(arguments: argparse.Namespace) -> _InferOptions:
    return fill_options(
        _InferOptions, arguments, method=fill_options(InferenceMethod, arguments), outputs=_build_outputs(arguments)
    )


def _build_join_options(arguments: argparse.Namespace) -> tuple[JoinOptions, TopologyOutputs]:
    return fill_options(JoinOptions, arguments), _build_outputs(arguments)


def _infer(options: _InferOptions) -> None:
    inferred, values = apply_method(options.method, read_host_delays(options.delays, options.method.unit))
    topology, again, refusal = inferred.topology, inferred.again, inferred.refusal
    stops = refusal is not None and not options.accept_weak
    outputs = options.outputs.without_fabrics() if stops else options.outputs
    _write_outputs(outputs, topology, f"inferred from {options.delays} by {topology.method}")
    if options.again:
        pairs = [(values.hosts[a], values.hosts[b]) for a, b in again.tolist()] if values else []
        write_named_pairs(options.again, pairs)
    document = describe_inferred(topology, values, len(again), refusal)
    print_result(document, describe_inference(topology, values, len(again), refusal), outputs.json, indent=1)
    if stops:
        unwritten = [str(path) for path in options.outputs.output if path not in outputs.output]
        raise InconsistentError(
            f"{options.delays}: the topology is not reliable: {refusal}"
            + (f"; not written: {', '.join(unwritten)} (--accept-weak)" if unwritten else "")
        )


def _join(options: tuple[JoinOptions, TopologyOutputs]) -> None:
    join, outputs = options
    topology = infer_joined(join)
    _write_outputs(outputs, topology, f"joined from {join.outer} and {join.inner}")
    print_result(describe_topology(topology), describe_inference(topology), outputs.json, indent=1)


@dataclass(frozen=True, slots=True)
class _ViewOptions:
    """The topology or delays, the unit of the delays, the page, and the method for positions."""

    topology: str
    unit: str
    output: Path
    positions: str
    gamma: float


def _view(options: _ViewOptions) -> None:
    if options.output.resolve() == Path(options.topology).resolve():
        raise UsageError(f"-o {options.output}: this is also the input")
    topology = read_or_infer(options.topology, options.unit)
    space = position_vertices(topology, options.positions, options.gamma)
    print(describe_positions(space), file=sys.stderr)
    write_topology_page(options.output, topology, options.topology, space)


@dataclass(frozen=True, slots=True)
class _CompareOutputs:
    """Coloured files of the reference; `json` prints JSON, `fail` makes differences exit with status 1."""

    output: tuple[Path, ...]
    json: bool
    fail: bool


def _build_compare_options(arguments: argparse.Namespace) -> tuple[CompareOptions, _CompareOutputs]:
    check_files(arguments.output, COMPARISON_ENDINGS, (arguments.inferred, arguments.reference))
    return (
        fill_options(CompareOptions, arguments, method=fill_options(InferenceMethod, arguments)),
        fill_options(_CompareOutputs, arguments, output=tuple(arguments.output)),
    )


def _compare(options: tuple[CompareOptions, _CompareOutputs]) -> int:
    compare, outputs = options
    comparison = compare_files(compare)
    for path in outputs.output:
        write_comparison(path, comparison)
    print_result(describe_comparison(comparison), describe_comparison_lines(comparison), outputs.json, indent=1)
    return THRESHOLD_CROSSED if outputs.fail and comparison.differences else 0


def _build_regress_options(arguments: argparse.Namespace) -> tuple[RegressOptions, tuple[Path, ...], TopologyOutputs]:
    options = fill_options(RegressOptions, arguments)
    tables = tuple(path for path in arguments.output if path.suffix == ".csv")
    arguments.output = [path for path in arguments.output if path not in tables]
    if options.is_fabric and arguments.output:
        raise UsageError(f"-o {arguments.output[0]}: a fabric's links go to .csv; .json is for what infer wrote")
    return options, tables, _build_outputs(arguments)


def _regress(options: tuple[RegressOptions, tuple[Path, ...], TopologyOutputs]) -> None:
    regress, tables, outputs = options
    links = regress_files(regress)
    for path in tables:
        write_regression_csv(path, links)
    if links.topology is not None:
        _write_outputs(outputs, links.topology, f"latencies regressed on {regress.delays}")
    print_result(describe_regression(links), describe_regression_lines(links), outputs.json, indent=1)


@dataclass(frozen=True, slots=True)
class _ThroughputOptions:
    measure: ConcurrentOptions
    pairs: int | None
    outputs: TopologyOutputs


def _build_throughput_options(arguments: argparse.Namespace) -> _ThroughputOptions:
    return _ThroughputOptions(_build_streams(arguments), arguments.pairs, _build_outputs(arguments))


def _measure_throughput(options: _ThroughputOptions) -> int:
    outputs = options.outputs

    def finish(topology: InferredTopology, found: LinkThroughput) -> None:
        measured = replace(topology, throughput=found)
        _write_outputs(outputs, measured, f"throughput measured on {options.measure.topology}")
        print_result(describe_topology(measured), describe_throughput(measured), outputs.json, indent=1)

    def plan(topology: InferredTopology) -> ThroughputMeasurement:
        return ThroughputMeasurement(topology, options.pairs)

    return work_together(lambda module: measure_on_all(module, options.measure, plan, finish))


def _build_streams(arguments: argparse.Namespace) -> ConcurrentOptions:
    """Return the sending parameters of pairs.

    Raises:
        UsageError: the message length is 0.
    """
    if not arguments.length:
        raise UsageError("--length: expected bytes above 0, found 0")
    return fill_options(ConcurrentOptions, arguments, streams=fill_options(StreamSettings, arguments))


@dataclass(frozen=True, slots=True)
class _DirectLinkOptions:
    measure: ConcurrentOptions
    between: tuple[tuple[str, str], ...]
    outputs: TopologyOutputs


def _build_direct_link_options(arguments: argparse.Namespace) -> _DirectLinkOptions:
    outputs = _build_outputs(arguments)
    between = tuple((str(one), str(other)) for one, other in arguments.between)
    return _DirectLinkOptions(_build_streams(arguments), between, outputs)


def _measure_direct_links(options: _DirectLinkOptions) -> int:
    def plan(topology: InferredTopology) -> DirectLinkTest:
        return DirectLinkTest(topology, _find_hosts(topology, options.between) if options.between else None)

    def finish(topology: InferredTopology, found: DirectLinkResults) -> None:
        path = options.measure.topology
        _write_outputs(options.outputs, add_direct_links(topology, found.rates), f"direct links tried on {path}")
        document, lines = list_direct_links(topology, found), describe_direct_links(topology, found)
        print_result(document, lines, options.outputs.json, indent=1)

    return work_together(lambda module: measure_on_all(module, options.measure, plan, finish))


def _find_hosts(topology: InferredTopology, between: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Return pairs of hosts by number.

    Raises:
        UsageError: the topology lacks a host.
    """
    number = {name: row for row, name in enumerate(topology.hosts)}
    for name in (name for pair in between for name in pair):
        if name not in number:
            raise UsageError(f"--between: expected a host of the topology, such as {topology.hosts[0]}, found {name}")
    return [(number[one], number[other]) for one, other in between]


def _remeasure(options: RemeasureOptions) -> int:
    return work_together(lambda module: remeasure(module, options))


def _build_outputs(arguments: argparse.Namespace) -> TopologyOutputs:
    """Return the outputs of a topology.

    Raises:
        UsageError: a file cannot be written, or is also an input.
    """
    outputs = fill_options(TopologyOutputs, arguments, output=tuple(arguments.output))
    outputs.check(name for name in vars(arguments).values() if isinstance(name, str | Path))
    return outputs


def _write_outputs(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> None:
    """Write a topology into the requested files, and print notes for their readers on stderr.

    Raises:
        UsageError: the topology cannot become a fabric.
        OSError: a file cannot be written.
    """
    for note in write_inferred(outputs, topology, remark):
        print(note, file=sys.stderr)
