# SPDX-License-Identifier: Apache-2.0
"""`ibprof info`: print what is in a profile, and what is missing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ibprof.cli.command import command, make_parser, print_json, print_pairs, print_table
from ibprof.text.quantities import format_bytes, format_seconds, name_call, name_mpi, printable

NS_PER_S = 10**9

EXAMPLES = """\
examples:
  ibprof info profile.otf2
  ibprof info profile.otf2 --marks
  ibprof info profile.ibprof --json
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof info",
        "Print what is in a profile: the job, hosts, ports, regions and operations with bytes and times, "
        "and what was not recorded.",
        EXAMPLES,
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="a profile or a recording")
    parser.add_argument("--marks", action="store_true", help="list the marks of all ranks, not only of one rank")
    parser.add_argument("--json", action="store_true", help="print all data as JSON")
    parser.add_argument("--run", metavar="NAME", help="which run of a recording (default: the newest)")
    return parser


@command("ibprof info")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof info`."""
    arguments = _parser().parse_args(argv)

    from ibprof.load import load_profile  # noqa: PLC0415  (late, so that --help is fast)
    from ibprof.profile.missing_data import account_for_run, describe_losses  # noqa: PLC0415
    from ibprof.profile.profile_summary import summarize  # noqa: PLC0415
    from ibprof.verdict.verdict_rules import judge_run  # noqa: PLC0415

    run = load_profile(arguments.profile, arguments.run)
    verdict = judge_run(run)
    summary = {"verdict": verdict.as_json()} | summarize(run)
    if arguments.json:
        print_json(summary)
    else:
        for sentence in (verdict.text, *describe_losses(account_for_run(run), complete=not summary["not_seen"])):
            print(printable(sentence))
        print()
        _print_text(summary, all_marks=arguments.marks)


def _print_text(summary: dict[str, Any], *, all_marks: bool) -> None:
    from ibprof.profile.profile_data import Source  # noqa: PLC0415  (slow to import)
    from ibprof.profile.scheduler_job import SchedulerJob  # noqa: PLC0415

    hosts = summary["hosts"]
    plural = "" if len(hosts) == 1 else "s"
    received = summary["bytes_received"] or any(source == "openmpi" for source in summary["sources"])
    print_pairs(
        {
            "command": summary["command"],
            summary["library"]: name_mpi(summary["mpi"]),
            "job": summary["job"],
            "scheduler": SchedulerJob(**(summary["scheduler"] or {})).text,
            "ranks": f"{summary['ranks_recorded']} of {summary['world_size']} recorded, on {len(hosts)} host{plural}",
            "measured in": ", ".join(Source[name.upper()].layer for name in summary["sources"]),
            "sent": f"{format_bytes(summary['bytes'])} in {summary['messages']:,} messages",
            "received": f"{format_bytes(summary['bytes_received'])}, counted by receivers" if received else "",
            "posted": _posted(summary),
            f"in {summary['library']}": _time_in_mpi(summary["time_in_mpi"]),
        }
    )
    print_table(
        ("host", "ranks", "port", "LID", "Gb/s"),
        (row for host in hosts for row in _host_rows(host)),
    )
    if any(port["hardware_sent"] is not None for host in hosts for port in host["ports"]) or summary["bytes_posted"]:
        print_table(
            ("host", "port", "posted out", "posted in", "port counter out", "in"),
            (row for host in hosts for row in _port_rows(host)),
        )
    if not summary["ports_measured"]:
        print_table(
            ("host", "sent by its ranks to other hosts", "port counters out", "unexplained, at least"),
            (row for host in hosts for row in _check_rows(host)),
        )
    print_table(
        ("region", "visits", "longest", "bytes", "messages"),
        (
            (
                region["name"],
                f"{region['visits']:,}",
                format_seconds(region["wall_ns_longest"] / NS_PER_S),
                format_bytes(region["bytes"]),
                f"{region['messages']:,}",
            )
            for region in summary["regions"]
        ),
    )
    print_table(
        ("operation", "bytes", "messages"),
        (
            (name_call(operation["name"]), format_bytes(operation["bytes"]), f"{operation['messages']:,}")
            for operation in sorted(summary["operations"], key=lambda operation: -operation["bytes"])
        ),
    )
    time = summary["time_in_mpi"]
    print_table(
        ("most time in", "calls", "time, mean", f"of {summary['library']}", "slowest rank"),
        (_top_row(row, time) for row in (time["top"] if time else ())),
    )
    marks = summary["marks"]
    shown = [mark for mark in marks if all_marks or mark["rank"] == marks[0]["rank"]]
    print_table(
        ("rank", "mark", "region", "Unix time", "sent", "received"),
        (
            (
                str(mark["rank"]),
                mark["kind"],
                mark["region"],
                _format_time(mark["time_ns"]),
                f"{mark['sent_bytes']:,}",
                f"{mark['received_bytes']:,}",
            )
            for mark in shown
        ),
    )
    if len(shown) < len(marks):
        print(f"(marks of rank {shown[0]['rank']}; --marks lists {len(marks):,} of all ranks)\n")
    print("not seen:" if summary["not_seen"] else "not seen: no known gap")
    for sentence in summary["not_seen"]:
        print(f"  {printable(sentence)}")


def _posted(summary: dict[str, Any]) -> str:
    if not summary["bytes_posted"]:
        return ""
    measured = "ports are measured" if summary["ports_measured"] else "only a part of the sent bytes"
    return f"{format_bytes(summary['bytes_posted'])} to queue pairs: {measured}"


def _time_in_mpi(time: dict[str, Any] | None) -> str:
    if time is None:
        return ""
    share = f", {time['share']:.1%} of the run" if time["share"] is not None else ""
    slowest = f"slowest rank {time['slowest']}: {format_seconds(time['slowest_s'])}"
    overlap = f"; threads overlap for {format_seconds(time['overlap_s'])} of it" if time["overlap_s"] else ""
    return f"{format_seconds(time['mean_s'])}, mean over ranks{share}{overlap}; {slowest}"


def _top_row(row: dict[str, Any], time: dict[str, Any]) -> tuple[str, ...]:
    mean, total = row["time_s"] / time["ranks"], time["mean_s"] * time["ranks"]
    return (
        " at ".join(filter(None, (name_call(row["operation"]), row.get("site")))),
        f"{row['calls']:,}",
        format_seconds(mean),
        f"{row['time_s'] / total:.1%}" if total else "",
        f"{row['slowest_rank']}: {format_seconds(row['slowest_rank_s'])}",
    )


def _port_rows(host: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    for port in host["ports"]:
        amounts = (port["bytes_sent"], port["bytes_received"], port["hardware_sent"], port["hardware_received"])
        name = f"{port['device']}/{port['port']}"
        yield host["name"], name, *("?" if amount is None else f"{amount:,}" for amount in amounts)


def _check_rows(host: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    amounts = (host["bytes_to_others"], host["hardware_sent"], host["unexplained_sent"])
    if host["hardware_sent"] is not None:
        yield host["name"], *(f"{amount:,}" for amount in amounts)


def _host_rows(host: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    from ibprof.profile.missing_data import format_ranks  # noqa: PLC0415  (slow to import)

    ranks = format_ranks(host["ranks"])
    if not host["ports"]:
        yield host["name"], ranks, "no InfiniBand port", "", ""
    for port in host["ports"]:
        state = "" if port["active"] else " (down)"
        lid = "" if port["lid"] is None else str(port["lid"])
        yield host["name"], ranks, f"{port['device']}/{port['port']}{state}", lid, f"{port['rate_gbps']:g}"


def _format_time(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, NS_PER_S)
    clock = datetime.fromtimestamp(seconds, timezone.utc).strftime("%H:%M:%S")
    return f"{seconds}.{rest:09d} ({clock} UTC)"
