# SPDX-License-Identifier: Apache-2.0
"""Answers to questions (advice, threshold, replay) as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ibprof.text.host_lists import join_hosts
from ibprof.text.quantities import count_of, format_change, printable
from ibprof_lab.simulation.measure.message_latency import ON_HOSTS, BySeed, Figure, average
from ibprof_lab.simulation.questions.advice import SERVERS, Advice
from ibprof_lab.simulation.questions.congestion_threshold import NEAR, Threshold, ThresholdQuestion
from ibprof_lab.simulation.questions.mitigation import Scenario, UndecidedChange
from ibprof_lab.simulation.questions.replayed_run import ReplayedTime, ReplayQuestion
from ibprof_lab.simulation.study.sizes_and_times import format_size, format_time
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role

_OTHERS = {
    False: ("the I/O job", "I/O requests", "I/O request"),
    True: ("the second job", "Messages of the second job", "its message"),
}
"""Names of the second job, of its messages, and of one message; the key is True if this job is a recorded run."""

_NAMES = {SERVERS: "servers", IO: "the other job", MPI: "the MPI job"}


def describe_advice(advice: Advice) -> dict[str, Any]:
    """Return the JSON form of advice."""
    times = advice.best.change(MPI, advice.scenarios[0]) if advice.best else None
    return {
        "ways": [_describe_scenario(each) for each in advice.scenarios],
        "advice": advice.best.name if advice.best else None,
        **_describe_share("gain", 1 - times.mean if times else math.nan, times.half if times else math.nan),
        "undecided": [
            {"name": each.scenario.name, **_describe_share("gain", each.gain, each.half), "seeds": each.seeds}
            for each in advice.undecided
        ],
        "hosts": {name: join_hosts(hosts) for name, hosts in advice.hosts.items()},
        "links_of_both": advice.shared,
        "busiest_links_of_both": [
            {key: value for key, value in asdict(link).items() if key != "end"} for link in advice.links
        ],
    }


def _describe_share(name: str, value: float, half: float) -> dict[str, float | None]:
    return {key: None if math.isnan(each) else round(each, 4) for key, each in ((name, value), (f"{name}_half", half))}


def _describe_scenario(scenario: Scenario) -> dict[str, Any]:
    setting, (io, mpi) = scenario.setting, scenario.jobs
    described: dict[str, Any] = {
        "name": scenario.name,
        "io_hosts": "named" if io.hosts else "drawn",
        "mpi_hosts": "named" if mpi.hosts else "drawn",
        "job_placement": setting.job_placement.value,
        "server_placement": "named" if setting.server_hosts else setting.server_placement.value,
        "routing": "adaptive" if setting.adaptive else "static",
        "io_window_us": round(io.window_ns / 1e3, 4),
    }
    for job in (MPI, IO):
        for name, figure, unit, scale in (
            ("alone", average(scenario.alone[job]), "_us", 1e3),
            ("beside", average(scenario.together[job]), "_us", 1e3),
            ("slowdown", scenario.slowdown(job), "", 1.0),
        ):
            described |= _describe_figure(f"{job}_{name}", figure, unit, scale)
    described |= _describe_figure("io_bytes_per_s", average(scenario.io_bytes_per_s), "", 1.0)
    return described | {"notes": scenario.notes}


def _describe_figure(name: str, figure: Figure | None, unit: str, scale: float) -> dict[str, float | None]:
    return {
        f"{name}{unit}": None if figure is None else round(figure.mean / scale, 4),
        f"{name}_half{unit}": None if figure is None or math.isnan(figure.half) else round(figure.half / scale, 4),
    }


def format_advice(advice: Advice) -> str:
    """Return advice as text."""
    now = advice.scenarios[0]
    other, many, short = _OTHERS[now.jobs[0].role is Role.PROFILE]
    lines = [
        f"Advice: {_conclude(advice, now)}",
        *_format_hosts(advice),
        "",
        f"MPI messages take {_mean(now.alone[MPI])} alone and {_mean(now.together[MPI])} next to {other}: "
        f"{_times(now.slowdown(MPI))}.",
        f"{many} take {_mean(now.alone[IO])} alone and {_mean(now.together[IO])} next to the MPI job: "
        f"{_times(now.slowdown(IO))}.",
        "",
        *_format_links(advice),
        "",
        "Effects of single changes, simulated, ± half of a 95% interval:",
        f"  {'':34}{'MPI message':>13}{'slow-down':>21}{short:>13}{'slow-down':>21}{'its rate':>17}",
        *(_format_row(each, now) for each in advice.scenarios),
        *_format_notes(advice),
    ]
    return "\n".join(lines)


def _format_hosts(advice: Advice) -> Iterator[str]:
    """Yield lines with the hosts that the advice recommends, one line per job."""
    if not advice.best:
        return
    is_sampled = not (advice.best.jobs[0].hosts and advice.best.jobs[1].hosts)
    yield "Hosts of this advice" + (", sampled with the seed of the fastest MPI messages:" if is_sampled else ":")
    for name, hosts in advice.hosts.items():
        if hosts:
            yield f"  {_NAMES[name]}: {printable(join_hosts(hosts))}"


def _format_links(advice: Advice) -> Iterator[str]:
    if not advice.shared:
        yield "No link direction carries both jobs."
        return
    yield f"{advice.shared} link directions carry both jobs. The busiest are:"
    for link in advice.links:
        busy = f"{100 * link.busy[IO]:.0f}% of the time with I/O, {100 * link.busy[MPI]:.2g}% with MPI"
        yield f"  {link.name!r} port {link.port} to {link.to!r}: busy {busy}"


def _format_notes(advice: Advice) -> Iterator[str]:
    """Yield lines with the reasons why means did not settle. A reason that all scenarios share is a single line."""
    names: dict[str, list[str]] = {}
    for each in advice.scenarios:
        for note in each.notes:
            names.setdefault(note, []).append(each.name)
    for note, of in names.items():
        for name in ["all of these"] if len(of) == len(advice.scenarios) else of:
            yield f"  {name}: a mean did not settle: {note}"


def _format_row(scenario: Scenario, now: Scenario) -> str:
    rate = scenario.change_of_rate(now)
    change = "?" if rate is None else f"{format_change(rate.mean - 1).removesuffix('%')} {_half(rate, 100, 1)}%"
    return (
        f"  {scenario.name:34}{_mean(scenario.together[MPI]):>13}{_times(scenario.slowdown(MPI)):>21}"
        f"{_mean(scenario.together[IO]):>13}{_times(scenario.slowdown(IO)):>21}{'' if scenario is now else change:>17}"
    )


def _conclude(advice: Advice, now: Scenario) -> str:
    if average(now.together[MPI]) is None and ON_HOSTS in now.notes:
        return f"none. The MPI job sends nothing over the network: {ON_HOSTS}."
    if average(now.together[MPI]) is None or not now.io_bytes_per_s:
        return (
            "none, since the mean latency of one job next to the other did not settle. Measure longer: run without "
            "--quick, or with --full."
        )
    if advice.best:
        times = advice.best.change(MPI, now) or Figure(1.0, 0.0)
        less = f"{_mean(advice.best.together[MPI])}, {100 * (1 - times.mean):.0f} {_half(times, 100, 0)}% less"
        also = "" if not advice.undecided else f" Perhaps better: {advice.undecided[0].scenario.name}."
        return f"{advice.best.name}: MPI messages then take {less}; the other job keeps at least 95% of its rate.{also}"
    if advice.undecided:
        return _format_undecided(advice.undecided[0])
    return "none of these makes MPI messages faster by more than 5% and leaves the other job at least 95% of its rate."


def _format_undecided(change: UndecidedChange) -> str:
    """Return sentences: why the gain is uncertain, and the number of seeds that would decide, if practical."""
    gain = f"{100 * change.gain:.0f}%"
    if math.isnan(change.half):
        why = f"{change.scenario.name} reduces the time of MPI messages by {gain}, but its 95% interval is unknown"
    else:
        half = f"{100 * change.half:.0f}%"
        why = f"{change.scenario.name} changes the time of MPI messages by -{gain} ± {half}: too uncertain to decide"
    if change.seeds is None:
        return f"unknown. {why}. A decision would need too many seeds."
    return f"unknown. {why}. About {change.seeds} seeds would be enough: --seeds {change.seeds}."


def _mean(figures: BySeed) -> str:
    found = average(figures)
    return "?" if found is None else format_time(found.mean)


def _times(ratio: Figure | None) -> str:
    return "?" if ratio is None else f"{ratio.mean:.2f} {_half(ratio, 1, 2)}times"


def _half(figure: Figure, scale: float, digits: int) -> str:
    return "" if math.isnan(figure.half) else f"± {scale * figure.half:.{digits}f} "


def describe_threshold(question: ThresholdQuestion, found: Threshold) -> dict[str, Any]:
    """Return the JSON form of a threshold."""
    return {
        "request_bytes": question.job.bytes,
        "reads": bool(question.job.reads),
        "clients": question.clients,
        "servers": question.setting.servers,
        "alone_us": _us(found.alone_ns),
        "without_pause_us": _us(found.without_pause_ns),
        "threshold_us": None
        if found.below_ns is None
        else {"from": _us(found.below_ns), "to": _us(found.above_ns), "about": _us(found.about_ns)},
        "seeds": found.seeds,
        "crossing_us": _us(found.crossing_ns),
        "bound_us": _us(found.bound_ns),
        "tried": [{"interval_us": _us(interval), "mean_us": _us(mean)} for interval, mean in found.tried],
    }


def format_threshold(question: ThresholdQuestion, found: Threshold) -> str:
    """Return a threshold as text."""
    clients, servers = count_of(question.clients, "client"), count_of(question.setting.servers, "server")
    kind = "Reads" if question.job.reads else "Requests"
    lines = [
        f"{kind} of {format_size(question.job.bytes)} from {clients} to {servers} of "
        f"{printable(question.setting.fabric)}:",
        f"  a request takes {_time(found.alone_ns)} alone, {_time(found.without_pause_ns)} without a pause between "
        "requests",
        *_format_bounds(found),
        "",
        f"  {'interval':>12}  {'request':>12}",
    ]
    lines += [f"  {_time(interval):>12}  {_time(mean):>12}" for interval, mean in found.tried]
    return "\n".join(lines)


def _format_bounds(found: Threshold) -> list[str]:
    if found.below_ns is None or found.above_ns is None or found.about_ns is None:
        return ["  no I/O-congestion threshold: even without a pause requests hardly delay each other"]
    by = f"{count_of(found.seeds, 'sample')} of hosts" + (
        "; other samples may differ: --seeds N" if found.seeds == 1 else ""
    )
    return [
        f"  I/O-congestion threshold: about {_time(found.about_ns)}, between {_time(found.below_ns)} and "
        f"{_time(found.above_ns)}. With this pause between a request's end and the next request's start,",
        f"    the job still has {100 * NEAR:.0f}% of the throughput that it has without a pause",
        f"    found with {by}",
        f"  crossing of the asymptotes, (time without a pause) - (time alone): {_time(found.crossing_ns)}",
        f"  threshold if only the servers' links limit the job, N S/(n B) - S/B: {_time(max(found.bound_ns, 0))}",
    ]


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e3, 3)


def _time(nanoseconds: float | None) -> str:
    return "?" if nanoseconds is None else format_time(nanoseconds)


def describe_replay(question: ReplayQuestion, found: ReplayedTime) -> dict[str, Any]:
    """Return the JSON form of a prediction."""
    return {
        "seconds": round(found.seconds, 6),
        "low": round(found.low, 6),
        "high": round(found.high, 6),
        "measured_s": round(found.measured, 6),
        "computing_s": round(found.computing, 6),
        "replayed_s": found.replayed
        and {"waits_early": round(found.replayed[0], 6), "waits_late": round(found.replayed[1], 6)},
        "predicted_s": {"waits_early": round(found.predicted[0], 6), "waits_late": round(found.predicted[1], 6)},
        "interval_s": round(question.run.interval, 6),
    }


def format_replay(found: ReplayedTime) -> str:
    """Return a prediction as text."""
    change = round(100 * (found.seconds / found.measured - 1))
    compared = f"{abs(change)}% {'more' if change > 0 else 'less'} than recorded" if change else "as recorded"
    lines = [
        f"predicted {found.seconds:.3g} s ({found.low:.3g} to {found.high:.3g}), {compared}",
        f"recorded  {found.measured:.3g} s, {found.computing:.3g} s of this time outside of MPI",
    ]
    if found.replayed:
        early, late = found.replayed
        ends = f"{early:.3g} s with the earliest possible waits, {late:.3g} s with the latest possible waits"
        lines.append(f"replayed  {ends}")
    else:
        lines.append("not calibrated: the run was recorded on one host, where no message crosses a network")
    return "\n".join(lines)
