# SPDX-License-Identifier: Apache-2.0
"""Write link loads as tables, graphs and pictures, all from the same rows."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

from ibprof.errors import UsageError, need_lab
from ibprof.profile.flame_graphs import fold_stacks
from ibprof.profile.missing_data import accounts_as_json
from ibprof.text.quantities import name_call
from ibprof_converter.analysis.output_files import STDOUT, naming_file, open_output
from ibprof_converter.analysis.pipeline_options import JOB, OPERATION, REGION, SITE
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.analysis.traffic_over_time import find_busiest, name_end
from ibprof_converter.layout.regular_cabling import find_dragonfly_groups
from ibprof_converter.outputs.rows import NODE_COLUMNS, Row, Table, link_rows, table_of
from ibprof_converter.outputs.table_files import write_csv
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.link_loads import load_links
from ibprof_converter.traffic.traffic_data import ALL

_PARQUET = ".parquet"


@dataclass(frozen=True, slots=True)
class LoadsOutputOptions:
    """The files to write.

    Attributes:
        output: file for links.csv (Parquet by its suffix). If None: stdout.
        nodes: file for nodes.csv (Parquet by its suffix).
        yaml: file for nodes and links as YAML.
        png, figure: files for pictures; a figure is PNG, SVG or PDF by its suffix.
        html: file for the web view.
        graphml, dot, tgf: files for graphs.
        topology_conf: file for Slurm's topology.
        boxfish: folder for tables.
        trace: file for trace events of the run over time.
        folded: file for folded stacks of calls, with the bytes of each call on the most loaded link direction.
        panels: `REGION`, `OPERATION`, `SITE` or `JOB`, to draw a panel for each value; None: one panel with the sum.
        only_used: true to leave out links without traffic.
        full_scale: bytes of the darkest colour in pictures. If None: bytes of the most loaded link direction.
    """

    output: Path | None = None
    nodes: Path | None = None
    yaml: Path | None = None
    png: Path | None = None
    figure: Path | None = None
    html: Path | None = None
    graphml: Path | None = None
    dot: Path | None = None
    tgf: Path | None = None
    topology_conf: Path | None = None
    boxfish: Path | None = None
    trace: Path | None = None
    folded: Path | None = None
    panels: str | None = None
    only_used: bool = False
    full_scale: int | None = None

    def files(self) -> Mapping[str, Path | None]:
        """Return the file that each option names."""
        paths = {f"--{name.replace('_', '-')}": getattr(self, name) for name in OUTPUT_FILES}
        return paths | {"--output": self.output or STDOUT}

    def check(self, by: Sequence[str], jobs: int) -> None:
        """Check the options before any file is read.

        Args:
            by: columns by which the loads are split, such as region and job.

        Raises:
            UsageError: `panels` is not in `by`, or is `JOB` for a single job.
            MissingToolError: an output needs a package that is not installed.
        """
        if self.panels in (REGION, OPERATION, SITE) and self.panels not in by:
            raise UsageError(f"--panels {self.panels} needs --by {self.panels}")
        if self.panels == JOB and jobs < 2:
            raise UsageError("--panels job needs several jobs")
        need_lab(*(("matplotlib",) if self.png or self.figure else ()), *(("networkx",) if self.graphml else ()))


_NO_FILES = ("panels", "only_used", "full_scale")

OUTPUT_FILES = tuple(field.name for field in fields(LoadsOutputOptions) if field.name not in _NO_FILES)
"""Names of options that are files to write."""


def write_outputs(loads: FabricLoads, options: LoadsOutputOptions, spell: Callable[[str], str] = str) -> None:
    """Write all files of the options.

    Args:
        spell: function applied to the view's texts, for example to shorten paths.

    Raises:
        MissingToolError: an output needs a package that is not installed.
        OSError: a file cannot be written; the error names the file.
    """

    def links() -> Iterator[Row]:
        return loads.rows(options.only_used)

    _write_table(options.output, loads.table(options.only_used))
    if options.nodes:
        _write_table(options.nodes, table_of(NODE_COLUMNS, loads.nodes()))
    if options.yaml:
        from ibprof_converter.outputs.yaml_files import write_yaml  # noqa: PLC0415  (PyYAML is slow to import)

        with open_output(options.yaml) as file:
            write_yaml(
                file, loads.about() | {"coverage": accounts_as_json(loads.coverage.accounts)}, loads.nodes(), links()
            )
    _write_graphs(loads, options, links)
    if options.topology_conf:
        _write_topology_conf(loads, options.topology_conf)
    if options.boxfish:
        from ibprof_converter.outputs.yaml_files import write_boxfish  # noqa: PLC0415  (PyYAML is slow to import)

        with naming_file(options.boxfish):
            write_boxfish(options.boxfish, loads.about(), loads.nodes(), links())
    if options.trace:
        _write_trace(loads, options.trace)
    if options.folded:
        stacks = fold_busiest_link(loads)
        with naming_file(options.folded):
            options.folded.write_text(stacks, encoding="utf-8")
    for path in filter(None, (options.png, options.figure)):
        draw_loads(path, loads, options.panels, options.only_used, options.full_scale)
    if options.html:
        from ibprof_converter.analysis.loads_view import NamedLoads, render_view  # noqa: PLC0415  (most runs write no page)
        from ibprof_converter.analysis.pipeline_stages import judge_loads  # noqa: PLC0415

        render_view(NamedLoads(loads, judged=judge_loads(loads)), spell=spell).save(options.html)


def _write_table(path: Path | None, table: Table) -> None:
    if path is not None and path.suffix.lower() == _PARQUET:
        from ibprof_converter.outputs.table_files import write_parquet  # noqa: PLC0415  (pyarrow is slow to import)

        with naming_file(path):
            write_parquet(path, table)
        return
    with open_output(path) as file:
        write_csv(file, table)


def _write_graphs(loads: FabricLoads, options: LoadsOutputOptions, links: Callable[[], Iterator[Row]]) -> None:
    if not (options.dot or options.tgf or options.graphml):
        return
    from ibprof_converter.outputs.graph_files import write_dot, write_graphml, write_tgf  # noqa: PLC0415  (slow: networkx)

    for path, write in ((options.dot, write_dot), (options.tgf, write_tgf)):
        if path:
            with open_output(path) as file:
                write(file, loads.nodes(), links())
    if options.graphml:
        with naming_file(options.graphml):
            write_graphml(options.graphml, loads.nodes(), links())


def _write_trace(loads: FabricLoads, path: Path) -> None:
    from ibprof.waiting.wait_split import measure_waiting  # noqa: PLC0415  (wanted seldom)
    from ibprof_converter.analysis.traffic_over_time import follow_links  # noqa: PLC0415
    from ibprof_converter.outputs.trace_events import write_trace  # noqa: PLC0415

    run = loads.demand.profile if loads.demand else None
    waiting = measure_waiting(run) if run else None
    if run is None or not (len(run.intervals.rank) or waiting):
        raise UsageError(
            f"--trace: {loads.title}: needs the intervals of one run; record with IBPROF_INTERVAL=100 (milliseconds)"
        )
    links = follow_links(loads, run.intervals) if len(run.intervals.rank) else ()
    with open_output(path) as file:
        write_trace(file, run, links, waiting)


def _write_topology_conf(loads: FabricLoads, path: Path) -> None:
    from ibprof_converter.outputs.slurm_topology import to_yaml, write_topology  # noqa: PLC0415  (slow to import)

    fabric, hosts = loads.fabric.fabrics[0], loads.fabric.hosts
    host_of = {
        f"0x{int(fabric.node_guid[node]):016x}": hosts.name[host]
        for node, host in enumerate(hosts.of_node[0].tolist())
        if host != NO_HOST
    }
    groups = {f"0x{int(fabric.node_guid[node]):016x}": group for node, group in find_dragonfly_groups(fabric).items()}
    first_rail = replace(loads.loads, by_rail=loads.loads.by_rail[:1])
    conf = io.StringIO()
    write_topology(conf, link_rows([fabric], loads.fabric.layouts[:1], first_rail), host_of, fabric.name, groups)
    with open_output(path) as file:
        file.write(to_yaml(conf.getvalue()) if path.suffix in (".yaml", ".yml") else conf.getvalue())


def draw_loads(
    file: Path | BinaryIO,
    loads: FabricLoads,
    panels: str | None = None,
    only_used: bool = False,
    full_scale: int | None = None,
) -> None:
    """Draw the fabric; colours show the load of each link direction.

    Args:
        file: a path with suffix .png, .svg or .pdf; or an open file, for a PNG.
        panels, only_used, full_scale: see `LoadsOutputOptions`.

    Raises:
        OSError: the file cannot be written; the error names the file.
    """
    # Suppress matplotlib's warnings about its font cache, which do not concern the user.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from ibprof_converter.outputs.fabric_picture import write_picture  # noqa: PLC0415  (matplotlib is slow to import)

    fabric, titles = loads.fabric, (loads.title, loads.subtitle)
    with naming_file(file) if isinstance(file, Path) else nullcontext():
        write_picture(file, *titles, fabric.fabrics, fabric.layouts, loads.loads, panels, only_used, full_scale)


def fold_busiest_link(loads: FabricLoads) -> str:
    """Return a line `LINK;region;operation;line BYTES` for each call with bytes on the most loaded link direction.

    The most loaded link direction has the largest time at line rate along static routes. Regions, operations and lines
    are left out if the traffic does not record them.

    Raises:
        UsageError: the loads are port counters, or no link carries bytes.
    """
    busiest = find_busiest(loads)
    if loads.traffic is None or not busiest:
        raise UsageError("--folded: no link carries bytes of known senders")
    rail, link, end = busiest[0]
    split = load_links(loads.traffic, loads.fabric.subnets, by_region=True, by_operation=True, by_site=True)
    amounts = split.by_rail[rail][link, end].tolist()
    jobs = split.jobs or (ALL,) * len(amounts)
    calls = (
        (job, region, name_call(operation), site)
        for job, (region, operation), site in zip(jobs, split.groups, split.sites, strict=True)
    )
    link_name = name_end(loads, rail, link, end)
    stacks = [(link_name, *(name for name in call if name != ALL)) for call in calls]
    return fold_stacks(sorted(zip(stacks, amounts, strict=True), key=lambda row: -row[1]))
