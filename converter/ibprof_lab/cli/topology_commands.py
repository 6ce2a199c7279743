# SPDX-License-Identifier: Apache-2.0
"""The commands of `ibprof-topology`, with parsed arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ibprof.cli.command import print_result
from ibprof.errors import THRESHOLD_CROSSED, InconsistentError, UsageError
from ibprof_converter.cli.arguments import call_with_options
from ibprof_lab.latency.files.pair_files import write_named_pairs
from ibprof_lab.latency.measure.concurrent_loops import StreamSettings
from ibprof_lab.latency.measure.mpi_job import work_together
from ibprof_lab.topology.infer.inference_methods import (
    InferenceMethod,
    apply_method,
    infer_joined,
    read_host_delays,
    read_or_infer,
)
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.model.topology_files import describe_topology
from ibprof_lab.topology.outputs.topology_outputs import (
    TopologyOutputs,
    check_files,
    describe_inference,
    describe_inferred,
    describe_positions,
    describe_throughput,
    write_inferred,
)
from ibprof_lab.topology.reference.link_regression import (
    describe_regression,
    describe_regression_lines,
    is_fabric,
    regress_files,
    write_regression_csv,
)
from ibprof_lab.topology.throughput.direct_links import (
    DirectLinkResults,
    DirectLinkTest,
    add_direct_links,
    describe_direct_links,
    list_direct_links,
)
from ibprof_lab.topology.throughput.link_throughput import ThroughputMeasurement
from ibprof_lab.topology.throughput.pair_jobs import RoundsPlan, measure_on_all
from ibprof_lab.topology.throughput.remeasurement import remeasure

Command = Callable[[], int | None]
Found = TypeVar("Found")


def build_command(arguments: argparse.Namespace) -> Command:
    """Return the command selected by the arguments.

    Raises:
        UsageError: options are invalid.
    """
    build: dict[str, Callable[[argparse.Namespace], Command]] = {
        "infer": _build_infer,
        "join": _build_join,
        "remeasure": lambda given: partial(
            work_together, lambda module: call_with_options(remeasure, given, module=module)
        ),
        "throughput": _build_throughput,
        "direct-links": _build_direct_links,
        "compare": _build_compare,
        "regress": _build_regress,
        "view": lambda given: partial(call_with_options, _view, given),
    }
    return build[arguments.command](arguments)


def _build_infer(arguments: argparse.Namespace) -> Command:
    method, outputs = call_with_options(InferenceMethod, arguments), _build_outputs(arguments)

    def run() -> None:
        delays = arguments.delays
        inferred, values = apply_method(method, read_host_delays(delays, method.unit))
        topology, again, refusal = inferred.topology, inferred.again, inferred.refusal
        stops = refusal is not None and not arguments.accept_weak
        written = outputs.without_fabrics() if stops else outputs
        _write_outputs(written, topology, f"inferred from {delays} by {topology.method}")
        if arguments.outliers:
            pairs = [(values.hosts[a], values.hosts[b]) for a, b in again.tolist()] if values else []
            write_named_pairs(arguments.outliers, pairs)
        document = describe_inferred(topology, values, len(again), refusal)
        print_result(document, describe_inference(topology, values, len(again), refusal), outputs.json, indent=1)
        if stops:
            unwritten = [str(path) for path in outputs.output if path not in written.output]
            raise InconsistentError(
                f"{delays}: the topology is not reliable: {refusal}"
                + (f"; not written: {', '.join(unwritten)} (--accept-weak writes them)" if unwritten else "")
            )

    return run


def _build_join(arguments: argparse.Namespace) -> Command:
    outputs = _build_outputs(arguments)

    def run() -> None:
        topology = call_with_options(infer_joined, arguments)
        _write_outputs(outputs, topology, f"joined from {arguments.outer} and {arguments.inner}")
        print_result(describe_topology(topology), describe_inference(topology), outputs.json, indent=1)

    return run


def _view(topology: str, unit: str, output: Path, positions: str, gamma: float) -> None:
    from ibprof_lab.topology.outputs.vertex_positions import position_vertices, write_topology_page  # noqa: PLC0415  (slow to import: the viewer)

    if output.resolve() == Path(topology).resolve():
        raise UsageError(f"-o {output}: this is also the input")
    found = read_or_infer(topology, unit)
    space = position_vertices(found, positions, gamma)
    print(describe_positions(space), file=sys.stderr)
    write_topology_page(output, found, topology, space)


def _build_compare(arguments: argparse.Namespace) -> Command:
    from ibprof_lab.topology.outputs.compared_topology import (  # noqa: PLC0415  (slow to import: networkx)
        COMPARISON_ENDINGS,
        describe_comparison,
        describe_comparison_lines,
        write_comparison,
    )
    from ibprof_lab.topology.reference.reference_comparison import compare_files  # noqa: PLC0415  (slow: networkx)

    check_files(arguments.output, COMPARISON_ENDINGS, (arguments.inferred, arguments.reference))
    method = call_with_options(InferenceMethod, arguments)

    def run() -> int:
        comparison = call_with_options(compare_files, arguments, method=method)
        for path in arguments.output:
            write_comparison(path, comparison)
        print_result(describe_comparison(comparison), describe_comparison_lines(comparison), arguments.json, indent=1)
        return THRESHOLD_CROSSED if arguments.fail and comparison.differences else 0

    return run


def _build_regress(arguments: argparse.Namespace) -> Command:
    tables = [path for path in arguments.output if path.suffix == ".csv"]
    arguments.output = [path for path in arguments.output if path not in tables]
    if is_fabric(arguments.topology) and arguments.output:
        raise UsageError(
            f"-o {arguments.output[0]}: expected .csv for links of a fabric; .json needs a topology of infer"
        )
    outputs = _build_outputs(arguments)

    def run() -> None:
        links = call_with_options(regress_files, arguments)
        for path in tables:
            write_regression_csv(path, links)
        if links.topology is not None:
            _write_outputs(outputs, links.topology, f"latencies regressed on {arguments.delays}")
        print_result(describe_regression(links), describe_regression_lines(links), outputs.json, indent=1)

    return run


def _build_throughput(arguments: argparse.Namespace) -> Command:
    def finish(topology: InferredTopology, found: LinkThroughput) -> None:
        measured = replace(topology, throughput=found)
        _write_outputs(outputs, measured, f"throughput measured on {arguments.topology}")
        print_result(describe_topology(measured), describe_throughput(measured), outputs.json, indent=1)

    run = _build_rounds(arguments, lambda topology: ThroughputMeasurement(topology, arguments.pairs_per_link), finish)
    outputs = _build_outputs(arguments)
    return run


def _build_direct_links(arguments: argparse.Namespace) -> Command:
    def plan(topology: InferredTopology) -> DirectLinkTest:
        return DirectLinkTest(topology, _find_hosts(topology, arguments.between) if arguments.between else None)

    def finish(topology: InferredTopology, found: DirectLinkResults) -> None:
        direct = add_direct_links(topology, found.rates)
        _write_outputs(outputs, direct, f"direct links tested for {arguments.topology}")
        print_result(list_direct_links(topology, found), describe_direct_links(topology, found), outputs.json, indent=1)

    outputs = _build_outputs(arguments)
    return _build_rounds(arguments, plan, finish)


def _build_rounds(
    arguments: argparse.Namespace,
    plan: Callable[[InferredTopology], RoundsPlan[Found]],
    finish: Callable[[InferredTopology, Found], None],
) -> Command:
    """Return a command that measures pairs of hosts on all processes of the job.

    Raises:
        UsageError: the message length is 0.
    """
    if not arguments.length:
        raise UsageError("--length: expected bytes above 0, found 0")
    streams = call_with_options(StreamSettings, arguments)
    others = {"streams": streams, "make_plan": plan, "finish": finish}
    return lambda: work_together(lambda module: call_with_options(measure_on_all, arguments, module=module, **others))


def _find_hosts(topology: InferredTopology, between: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Convert pairs of host names into pairs of host indices.

    Raises:
        UsageError: the topology lacks a host.
    """
    number = {name: row for row, name in enumerate(topology.hosts)}
    for name in (name for pair in between for name in pair):
        if name not in number:
            raise UsageError(f"--between: expected a host of the topology, such as {topology.hosts[0]}, found {name}")
    return [(number[one], number[other]) for one, other in between]


def _build_outputs(arguments: argparse.Namespace) -> TopologyOutputs:
    """Return the output files and formats that the arguments ask for.

    Raises:
        UsageError: a file cannot be written, or is also an input.
    """
    outputs = call_with_options(TopologyOutputs, arguments, output=tuple(arguments.output))
    outputs.check(name for name in vars(arguments).values() if isinstance(name, str | Path))
    return outputs


def _write_outputs(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> None:
    """Write a topology into the output files; print notes on stderr.

    Raises:
        UsageError: the topology cannot be written as a fabric (.lst).
        OSError: a file cannot be written.
    """
    for note in write_inferred(outputs, topology, remark):
        print(note, file=sys.stderr)
