# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim threshold` and `advise`: questions that a few simulations answer."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibprof.cli.progress import show_progress
from ibprof.load import load_profile
from ibprof.profile.gaps import describe_gaps
from ibprof.text.quantities import printable
from ibprof_converter.cli.sim_options import format_size, format_time, refuse_option
from ibprof_converter.simulation.engine.simulated_network import Hardware
from ibprof_converter.simulation.measure.seed_statistics import BySeed, Figure, average
from ibprof_converter.simulation.questions.congestion_threshold import NEAR, Threshold, find_threshold
from ibprof_converter.simulation.questions.mitigation import (
    Way,
    compare_ways,
    list_cells,
    recommend,
)
from ibprof_converter.simulation.questions.shared_links import SharedLink, find_shared_links
from ibprof_converter.simulation.study.cell import (
    Cell,
    Outcome,
    Setting,
    can_route_adaptively,
    count_lanes,
    load_network,
    set_up,
)
from ibprof_converter.simulation.study.job_patterns import IO, MPI
from ibprof_converter.simulation.study.named_hosts import DRAWN, NamedHosts, give_named, share_rest, stay_as_recorded
from ibprof_converter.simulation.study.sweep import run_cells
from ibprof_converter.simulation.workload.recorded_messages import load_messages
from ibprof_converter.simulation.workload.roles import Role, Workload


def find_own_threshold(arguments: argparse.Namespace, setting: Setting, pool: Executor) -> None:
    """Answer `threshold`."""
    job = Workload(IO, Role.IO, arguments.size, share=arguments.share)
    tell_of_fabric(setting.fabric)
    found = _in_folder(
        arguments,
        lambda folder: find_threshold(
            setting, job, range(1, arguments.seeds + 1), lambda cells: _simulate(cells, folder, pool)
        ),
    )
    clients = int(set_up(Cell(setting, (job,), (IO,), IO, 1)).measured.sum())
    if arguments.json:
        print(json.dumps({"request_bytes": job.bytes, "clients": clients, "servers": setting.servers}
                         | _describe_threshold(found), indent=2))  # fmt: skip
    else:
        print(_tell_threshold(found, job, clients, setting))


def _in_folder(arguments: argparse.Namespace, work: Any) -> Any:
    """Do work in the folder of results, which is forgotten where none was named."""
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        return work(arguments.output)
    with TemporaryDirectory(prefix="ibprof-sim-") as folder:
        return work(Path(folder))


def _describe_threshold(found: Threshold) -> dict[str, Any]:
    def us(value: float | None) -> float | None:
        return None if value is None else round(value / 1e3, 3)

    return {
        "alone_us": us(found.alone_ns),
        "without_pause_us": us(found.without_pause_ns),
        "threshold_us": None
        if found.below_ns is None
        else {"from": us(found.below_ns), "to": us(found.above_ns), "about": us(found.about_ns)},
        "seeds": found.seeds,
        "crossing_us": us(found.crossing_ns),
        "bound_us": us(found.bound_ns),
        "tried": [{"interval_us": us(interval), "mean_us": us(mean)} for interval, mean in found.tried],
    }


def _tell_threshold(found: Threshold, job: Workload, clients: int, setting: Setting) -> str:
    lines = [
        f"Requests of {format_size(job.bytes)} from {_count(clients, 'client')} to {_count(setting.servers, 'server')} "
        f"of {printable(setting.fabric)}:",
        f"  one takes {_time(found.alone_ns)} alone, {_time(found.without_pause_ns)} without a pause between them",
    ]
    if found.below_ns is None or found.above_ns is None or found.about_ns is None:
        lines.append("  no I/O-congestion threshold: even without a pause requests hardly wait for each other")
    else:
        lines.append(
            f"  I/O-congestion threshold: about {_time(found.about_ns)}, between {_time(found.below_ns)} and "
            f"{_time(found.above_ns)}, from a request's end to the next one's start,"
        )
        lines.append(f"    up to which the job has {100 * NEAR:.0f} % of the throughput that it has without a pause")
        of = "1 draw of hosts: others differ, --seeds N tells" if found.seeds == 1 else f"{found.seeds} draws of hosts"
        lines.append(f"    by {of}")
        lines.append(f"  as a corner, without a pause less alone: {_time(found.crossing_ns)}")
        lines.append(f"  by the servers' links alone, N S/(n B) - S/B: {_time(max(found.bound_ns, 0))}")
    lines += ["", f"  {'interval':>12}  {'request':>12}"]
    lines += [f"  {_time(interval):>12}  {_time(mean):>12}" for interval, mean in found.tried]
    return "\n".join(lines)


def advise(arguments: argparse.Namespace, setting: Setting, pool: Executor) -> None:
    """Answer `advise`."""
    io, mpi = _place_jobs(
        setting, _read_io(arguments.io, 1 - arguments.share), _read_mpi(arguments.mpi, arguments.share), arguments
    )
    seeds = range(1, arguments.seeds + 1)
    tell_of_profiles([mpi])
    tell_of_fabric(setting.fabric)
    if not can_route_adaptively(setting.fabric):
        print("ibprof-sim: adaptive routing is not tried: it can deadlock on this fabric", file=sys.stderr)
    cells = list_cells(setting, io, mpi, seeds)
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    outcomes = _in_folder(arguments, lambda folder: _simulate(cells, folder, pool))
    ways = compare_ways(setting, io, mpi, seeds, outcomes)
    links, shared = find_shared_links(Cell(setting, (io, mpi), (IO, MPI), MPI, 1))
    best, is_open = recommend(ways, MPI)
    if arguments.json:
        print(json.dumps(_describe_ways(ways, best, links, shared), indent=2))
    else:
        print(_tell_ways(ways, best, is_open, links, shared))


def _place_jobs(
    setting: Setting, io: Workload, mpi: Workload, arguments: argparse.Namespace
) -> tuple[Workload, Workload]:
    """Give both jobs the hosts that options name, or that the recording does, and say what is left to be drawn."""
    named, taken = NamedHosts(setting), dict.fromkeys(setting.server_hosts, "a server")
    is_drawn = arguments.mpi_hosts == [DRAWN] and mpi.role is Role.PROFILE
    jobs = [
        give_named(setting, job, names, named, taken, refuse_option(f"--{job.name}-hosts")) if names else job
        for job, names in ((io, arguments.io_hosts), (mpi, None if is_drawn else arguments.mpi_hosts))
    ]
    jobs, notes = stay_as_recorded(setting, jobs, named, [MPI] if is_drawn else [])
    io, mpi = share_rest(jobs, (IO, MPI))
    for note in notes:
        tell_on_stderr(note)
    drawn = {"--servers": setting.server_hosts, "--mpi-hosts": mpi.hosts, "--io-hosts": io.hosts}
    if options := [option for option, hosts in drawn.items() if not hosts]:
        tell_on_stderr(f"hosts are drawn where no option names them: {', '.join(options)}")
    return io, mpi


def tell_on_stderr(note: str) -> None:
    """Say something beside the answer."""
    print(f"ibprof-sim: {printable(note)}", file=sys.stderr)


def tell_of_profiles(workloads: Iterable[Workload]) -> None:
    """Say on stderr which recorded runs are given more hosts than they had, and of which not all messages are sent."""
    told = []
    for each in workloads:
        if not each.profile:
            continue
        recorded = load_messages(Path(each.profile), with_times=each.follows_time_line)
        if recorded.was_on_one_host:
            was = "was recorded on one host, where nothing goes over a network: each rank is given one of its own"
            told.append(f"{each.profile} {was}")
        if recorded.one_of > 1:
            told.append(f"{each.profile} has so many messages that one of {recorded.one_of} is sent, in each size")
        told += list_gaps(each)
    for line in dict.fromkeys(told):
        tell_on_stderr(line)


def list_gaps(workload: Workload) -> list[str]:
    """Give what a recorded run's profile lacks; nothing of other jobs."""
    path = workload.profile
    return [f"{path}: {gap}" for gap in describe_gaps(load_profile(Path(path)))] if path else []


def tell_of_fabric(fabric: str) -> None:
    """Say on stderr what is odd about a fabric and its tables."""
    for warning in load_network(fabric, Hardware(gbps=1.0))[0].warnings:
        print(f"ibprof-sim: {printable(warning)}", file=sys.stderr)
    if (lanes := count_lanes(fabric)) > 1:
        told = f"routes close circles: pairs of leaves are spread over {lanes} virtual lanes that keep them apart"
        print(f"ibprof-sim: {told}; a dump's own SLs are not looked at", file=sys.stderr)


def _simulate(cells: Sequence[Cell], folder: Path, pool: Executor) -> dict[str, Outcome]:
    with show_progress("simulating") as tell:
        return run_cells(cells, folder, pool, tell)


def _describe_ways(ways: Sequence[Way], best: Way | None, links: Sequence[SharedLink], shared: int) -> dict[str, Any]:
    def us(value: float | None) -> float | None:
        return None if value is None else round(value / 1e3, 4)

    return {
        "ways": [
            {
                "name": way.name,
                "io_hosts": "named" if way.jobs[0].hosts else "drawn",
                "mpi_hosts": "named" if way.jobs[1].hosts else "drawn",
                "job_placement": way.setting.job_placement.value,
                "server_placement": "named" if way.setting.server_hosts else way.setting.server_placement.value,
                "routing": "adaptive" if way.setting.adaptive else "static",
                "io_window_us": us(way.jobs[0].window_ns),
                **{
                    f"{job}_{name}": value
                    for job in (MPI, IO)
                    for what, figure, unit, scale in (
                        ("alone", average(way.alone[job]), "_us", 1e3),
                        ("beside", average(way.beside[job]), "_us", 1e3),
                        ("slowdown", way.slowdown(job), "", 1.0),
                    )
                    for name, value in _describe_figure(what, figure, unit, scale)
                },
                **dict(_describe_figure("io_bytes_per_s", average(way.io_bytes_per_s), "", 1.0)),
                "notes": way.notes,
            }
            for way in ways
        ],
        "advice": best.name if best else None,
        "links_of_both": shared,
        "busiest_links_of_both": [
            {key: value for key, value in asdict(link).items() if key != "end"} for link in links
        ],
    }


def _describe_figure(name: str, figure: Figure | None, unit: str, scale: float) -> Iterator[tuple[str, float | None]]:
    yield f"{name}{unit}", None if figure is None else round(figure.mean / scale, 4)
    yield f"{name}_half{unit}", None if figure is None or math.isnan(figure.half) else round(figure.half / scale, 4)


def _tell_ways(ways: Sequence[Way], best: Way | None, is_open: bool, links: Sequence[SharedLink], shared: int) -> str:
    now = ways[0]
    lines = [
        f"MPI messages take {_mean(now.alone[MPI])} alone and {_mean(now.beside[MPI])} beside the I/O job: "
        f"{_times(now.slowdown(MPI))}.",
        f"I/O requests take {_mean(now.alone[IO])} alone and {_mean(now.beside[IO])} beside the MPI job: "
        f"{_times(now.slowdown(IO))}.",
        "",
        f"Both jobs send on {shared} link ends. Those that both keep busiest:"
        if shared
        else "No link end is sent on by both jobs.",
    ]
    lines += [
        f"  {link.name!r} port {link.port} to {link.to!r}: busy {100 * link.busy[IO]:.0f} % of the time with I/O, "
        f"{100 * link.busy[MPI]:.2g} % with MPI"
        for link in links
    ]
    head = f"  {'':34}{'MPI message':>13}{'slow-down':>21}{'I/O request':>13}{'slow-down':>21}{'I/O rate':>17}"
    lines += ["", "What changes would do, each simulated, ± half of a 95 % interval:", head]
    for way in ways:
        rate = way.change_of_rate(now)
        change = "?" if rate is None else f"{100 * (rate.mean - 1):+.1f} {_half(rate, 100, 1)}%"
        lines.append(
            f"  {way.name:34}{_mean(way.beside[MPI]):>13}{_times(way.slowdown(MPI)):>21}{_mean(way.beside[IO]):>13}"
            f"{_times(way.slowdown(IO)):>21}{'' if way is now else change:>17}"
        )
    lines += [f"  {way.name}, where a mean did not settle: {note}" for way in ways for note in way.notes]
    before = average(now.beside[MPI])
    lines.append("")
    if before is None or not now.io_bytes_per_s:
        lines.append("Advice: none, as what both jobs do now is not known well enough.")
    elif best is None and is_open:
        lines.append(
            "Advice: none that is sure: what some would change is within what seeds differ by; --seeds N tells."
        )
    elif best is None:
        lines.append("Advice: none of these makes MPI messages quicker by more than 5 % and leaves I/O its rate.")
    else:
        times = best.change(MPI, now) or Figure(1.0, 0.0)
        less = f"{_mean(best.beside[MPI])}, {100 * (1 - times.mean):.0f} {_half(times, 100, 0)}% less"
        lines.append(f"Advice: {best.name}: MPI messages then take {less}, and the I/O job keeps its rate to 5 %.")
    return "\n".join(lines)


def _read_io(pattern: tuple[int, float], share: float) -> Workload:
    return Workload(IO, Role.IO, pattern[0], interval_ns=pattern[1], share=share)


def _read_mpi(traffic: tuple[int | Path, float], share: float) -> Workload:
    what, interval = traffic
    if isinstance(what, Path):
        return Workload(MPI, Role.PROFILE, 1, interval_ns=interval, share=share, profile=str(what))
    return Workload(MPI, Role.PAIRS, what, interval_ns=interval, share=share)


def _time(nanoseconds: float | None) -> str:
    return "?" if nanoseconds is None else format_time(nanoseconds)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _mean(figures: BySeed) -> str:
    found = average(figures)
    return _time(found.mean if found else None)


def _times(ratio: Figure | None) -> str:
    return "?" if ratio is None else f"{ratio.mean:.2f} {_half(ratio, 1, 2)}times"


def _half(figure: Figure, scale: float, digits: int) -> str:
    return "" if math.isnan(figure.half) else f"± {scale * figure.half:.{digits}f} "
