# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology compare`: what was measured, beside what should be there."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import THRESHOLD_CROSSED, UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.arguments import parse_share
from ibprof_converter.cli.topology_methods import add_method_arguments, apply_method, read_processes
from ibprof_converter.latency.files.atomic_write import write_atomically
from ibprof_converter.outputs.compared_topology import describe_comparison, write_dot, write_svg
from ibprof_converter.outputs.slurm import compress
from ibprof_converter.routing.rail_files import has_links
from ibprof_converter.routing.synthetic.spec import is_synthetic
from ibprof_converter.topology.files.topology_files import READERS, read_graph
from ibprof_converter.topology.reference.differences import REGULAR
from ibprof_converter.topology.reference.reference_comparison import (
    ReferenceComparison,
    compare_with_reference,
    make_observable_topology,
)
from ibprof_converter.topology.reference.reference_topology import read_reference
from ibprof_converter.topology.reference.slow_links import LEAST_DELAY, LEAST_SPEED

_ENDINGS = (".dot", ".svg", ".json")
_MOST_SHOWN = 20

_EXAMPLES = """\
examples:
  ibprof-topology compare delays.nc plan.dot
  ibprof-topology compare delays.nc ibdiagnet2.lst --fail
  ibprof-topology compare topology.json plan.dot -o differences.svg -o differences.dot
  ibprof-topology compare delays.nc plan.dot --length 1M --json

A plan in DOT has hosts and switches by their names, and on its edges speeds in Gb/s, as label or gbps:
  graph plan { n1 -- leaf1 [label=100]; n2 -- leaf1 [label=100]; leaf1 -- spine [label=200] }
"""


def add_compare(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `compare`."""
    parser = commands.add_parser(
        "compare",
        help="with the topology that should be there",
        description="Compare an inferred topology, or delays, with a plan in DOT or with the fabric's own files: "
        "wrong cables, slow links.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    add("inferred", metavar="INFERRED", help="what infer wrote (.json, .dot, .tgf, .lst), or delays")
    add("reference", metavar="REFERENCE", help="a plan (.dot), a fabric as ibprof-layout takes it, or what infer wrote")
    add("--rail", metavar="N", type=int, default=0, help="of a REFERENCE with several (0)")
    add(
        "--least",
        metavar="SHARE",
        type=parse_share,
        default=LEAST_DELAY,
        help="by how much longer delays must be that a link is blamed for (10%%)",
    )
    add(
        "--least-speed",
        metavar="SHARE",
        type=parse_share,
        default=LEAST_SPEED,
        help="of its speed that a link must reach, where delays of long messages tell (50%%)",
    )
    add("--fail", action="store_true", help="end with status 1 when there is a difference")
    add("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="the reference coloured by its "
        "differences (.dot, .svg), or .json")  # fmt: skip
    add("--json", action="store_true", help="the same for programs")
    add_method_arguments(parser)


def _run(arguments: argparse.Namespace) -> int:
    for path in arguments.output:
        if path.suffix not in _ENDINGS:
            raise UsageError(f"-o {path}: expected a name that ends with {', '.join(_ENDINGS)}")
        if path.resolve() in (Path(arguments.inferred).resolve(), Path(arguments.reference).resolve()):
            raise UsageError(f"-o {path}: this is also an input")
    reference = read_reference(arguments.reference, arguments.rail)
    shares = (arguments.least, arguments.least_speed)
    name = arguments.inferred
    if Path(name).suffix in READERS:
        found = read_graph(name)
        timed = not np.isnan(found.latency_seconds).any()
        if not timed:
            found = replace(found, latency_seconds=np.full(len(found.edge), 1e-6))
        beside = compare_with_reference(found, reference, None, arguments.length or 0, *shares, timed)
    elif is_synthetic(name) or Path(name).is_dir() or has_links(Path(name)):
        beside = compare_with_reference(make_observable_topology(read_reference(name)), reference, None, timed=False)
    else:
        delays = read_processes(name)
        length = int(delays.lengths[0]) if arguments.length is None else arguments.length
        if length not in delays.lengths:
            raise UsageError(f"--length: {length} bytes were not measured")
        # Who is where is told by the shortest messages, whatever the length whose times are looked at.
        arguments.bootstrap, arguments.length = 0, None
        inferred, values = apply_method(arguments, delays)
        statistic = values.statistic if values else "median"
        beside = compare_with_reference(inferred.topology, reference, delays, length, *shares, statistic=statistic)
    document = describe_comparison(beside)
    for path in arguments.output:
        _write(path, beside, document)
    if arguments.json:
        print(json.dumps(document, indent=1))
    else:
        for line in _describe(beside):
            print(printable(line))
    return THRESHOLD_CROSSED if arguments.fail and beside.differences else 0


def _write(path: Path, beside: ReferenceComparison, document: dict[str, Any]) -> None:
    text = StringIO()
    if path.suffix == ".json":
        print(json.dumps(document, indent=1), file=text)
    else:
        {".dot": write_dot, ".svg": write_svg}[path.suffix](text, beside)
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _describe(beside: ReferenceComparison) -> Iterator[str]:
    comparison, reference = beside.comparison, beside.reference
    alike = f"; {100 * comparison.similarity:.1f} % alike" if comparison.kind == REGULAR else ""
    yield f"{len(comparison.hosts)} hosts compared with {reference.origin}, {comparison.kind}{alike}"
    yield f"{beside.differences} differences" if beside.differences else "no difference"
    if comparison.not_in_reference:
        yield f"not in the reference: {_some(comparison.not_in_reference)}"
    for each in comparison.misplaced[:_MOST_SHOWN]:
        yield (
            f"wrong cable: {each.host} is measured with {_some(each.found_peers)} of {each.found_switch}; the "
            f"reference has it on {each.switch} with {_some(each.peers) or 'no other host'}"
        )
    for part in comparison.separated[:_MOST_SHOWN]:
        yield f"apart: {_some(part.hosts)}, on {part.switch} by the reference, farther than {_some(part.others)} there"
    for moved in comparison.recabled[:_MOST_SHOWN]:
        yield (
            f"wrong cable: {moved.switch} with {_some(moved.hosts)} is measured nearest to {_some(moved.found_near)}; "
            f"by the reference it is to {_some(moved.near)}"
        )
    for group in comparison.regrouped[:_MOST_SHOWN]:
        yield (
            f"grouped otherwise: near to one another by the reference: {_some(group.expected) or 'none like these'}; "
            f"by the delays: {_some(group.found) or 'none like these'}"
        )
    for what, pairs in (("missing", comparison.missing), ("not in the reference", comparison.extra)):
        for a, b in pairs[:_MOST_SHOWN]:
            yield f"link {what}: {a} to {b}"
    for link in beside.slow[:_MOST_SHOWN]:
        a, b = (reference.names[end] for end in reference.link[link.link].tolist())
        yield f"slow: {a} to {b}: {link.why}"
    lists = (comparison.misplaced, comparison.separated, comparison.missing, comparison.extra, beside.slow)
    if any(len(each) > _MOST_SHOWN for each in lists):
        yield "and more: --json has all"
    if comparison.not_measured:
        yield f"note: not measured: {_some(comparison.not_measured)}"
    for switches in comparison.merged[:_MOST_SHOWN]:
        yield f"cannot be told: {_some(switches)}: by the delays their hosts are on one switch"
    for text in comparison.unknown:
        yield f"cannot be told: {text}"


def _some(names: tuple[str, ...]) -> str:
    return compress(names[:200]) + (", ..." if len(names) > 200 else "")
