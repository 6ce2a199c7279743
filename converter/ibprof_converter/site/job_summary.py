# SPDX-License-Identifier: Apache-2.0
"""Compute the summary of a job from a profile, write it as a JSON line, and read it as a row of the store.

docs/formats/site.md describes each column.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ibprof.errors import InputError, quote_found
from ibprof.profile.call_report import sum_calls
from ibprof.profile.profile_data import Profile
from ibprof.verdict.verdict_data import Verdict
from ibprof.verdict.verdict_rules import judge_run
from ibprof.waiting.wait_split import measure_waiting
from ibprof_converter.analysis.pipeline_options import TrafficOptions
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.analysis.pipeline_stages import judge_loads, load_demands
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.causes.load_cause import PLACEMENT
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.reports.recorded_job import describe_job, follow_time
from ibprof_converter.site.fabric_days import DatedFabric
from ibprof_converter.traffic.traffic_reader import profile_traffic

NS = 1e-9
LINES_KEPT = 20
"""A summary has at most this number of call sites, those with most time; `OTHERS` is the sum of all other sites."""

PAIRS_KEPT = 1000
"""A summary has at most this number of pairs of ports: those with most bytes."""

OTHERS = "(others)"

FUTURE = timedelta(days=1)
"""Times of jobs that are later than this machine's clock by more than this span are invalid."""

_LARGEST_FRACTION = 1e18
_EARLIEST = datetime(2000, 1, 1)
_LONGEST_LINE = 1 << 24
_LINES_AT_ONCE = 1 << 26

_TEXT, _COUNT, _BYTES, _SECONDS = pa.string(), pa.int32(), pa.int64(), pa.float64()
_MOMENT = pa.timestamp("us")

SCHEMA = pa.schema(
    {
        "key": _TEXT,
        "job": _TEXT,
        "task": _TEXT,
        "step": _TEXT,
        "name": _TEXT,
        "user": _TEXT,
        "partition": _TEXT,
        "began": _MOMENT,
        "ended": _MOMENT,
        "finished": pa.bool_(),
        "ranks": _COUNT,
        "nodes": _COUNT,
        "hosts": pa.list_(_TEXT),
        "calls": _BYTES,
        "bytes": _BYTES,
        "run_s": _SECONDS,
        "mpi_s": _SECONDS,
        "wait_s": _SECONDS,
        "split_error_s": _SECONDS,
        "transfer_s": _SECONDS,
        "unsplit_s": _SECONDS,
        "line_rate_s": _SECONDS,
        "gain_s": _SECONDS,
        "placement_gain_s": _SECONDS,
        "verdict": _TEXT,
        "cause": _TEXT,
        "late": pa.list_(pa.struct({"rank": _COUNT, "host": _TEXT, "wait_s": _SECONDS, "share": _SECONDS})),
        "lines": pa.list_(
            pa.struct(
                {
                    "operation": _TEXT,
                    "site": _TEXT,
                    "calls": _BYTES,
                    "time_s": _SECONDS,
                    "wait_s": _SECONDS,
                    "transfer_s": _SECONDS,
                    "bytes": _BYTES,
                }
            )
        ),
        "fabric": _TEXT,
        "links": pa.list_(_COUNT),
        "link_bytes": pa.list_(_BYTES),
        "unrouted_bytes": _BYTES,
        "pair_rail": pa.list_(_COUNT),
        "pair_source": pa.list_(_COUNT),
        "pair_destination": pa.list_(_COUNT),
        "pair_bytes": pa.list_(_BYTES),
        "bin_s": _SECONDS,
        "bin_bytes": pa.list_(_BYTES),
        "bin_mpi_s": pa.list_(_SECONDS),
    }
)
"""Columns of the store, which has a row for each job. Times are UTC."""

PARALLEL = (
    ("links", "link_bytes"),
    ("pair_source", "pair_destination", "pair_rail", "pair_bytes"),
    ("bin_bytes", "bin_mpi_s"),
)
"""Groups of list columns. Groups of columns: in a row, the lists of a group's columns have the same length."""

REQUIRED = ("key", "began", "ended", "ranks", "nodes", "bytes")
_NOT_NEGATIVE = ("ranks", "nodes", "bytes", "calls", "run_s", "mpi_s", "wait_s", "bin_s")
_AMOUNTS = ("links", "link_bytes", "pair_bytes", "bin_bytes")

Row = dict[str, Any]


def summarise_job(run: Profile, fabric: DatedFabric | None, placement: str | None = None) -> Row:
    """Return the summary of a run as a row of `SCHEMA`.

    Args:
        run: the profile; `run.name` must be its path.
        fabric: the fabric that was valid on the job's day. If None: the summary has no link loads.
        placement: rank placement, a value of `ibprof-layout --placement`. If None: the recorded hosts.

    Raises:
        IbprofError: as `load_demands` does.
    """
    facts = describe_job(run)
    loads = _load_links(run, fabric, placement) if fabric else None
    judged = judge_loads(loads) if loads else None
    verdict = judged.verdict if judged else judge_run(run)
    bins = follow_time(run)
    measured = measure_waiting(run)
    sums = sorted(
        sum_calls(run, ("operation", "site"), shares=measured.shares if measured else None),
        key=lambda each: (-(each.time_s or 0), -each.bytes, each.key),
    )
    kept = [_line(each.key, [each]) for each in sums[:LINES_KEPT]]
    if rest := sums[LINES_KEPT:]:
        kept.append(_line((OTHERS, OTHERS), rest))
    ended_ns = max([facts.started_ns, *_last_moments(run)])
    return {
        "key": identify_run(run),
        **_identify(run),
        "began": _moment(facts.started_ns),
        "ended": _moment(ended_ns),
        "finished": facts.elapsed_s is not None and run.ranks_recorded >= run.world_size,
        "ranks": run.world_size,
        "nodes": max(len(run.hosts), len(run.job_hosts)),
        "hosts": sorted({host.name for host in run.hosts}),
        "calls": int(run.times.calls.sum(dtype=np.uint64)) if len(run.times.rank) else None,
        "bytes": sum(each.bytes for each in sums),
        **_times(verdict),
        "placement_gain_s": _placement_gain(judged.links.diagnosis) if judged else None,
        "verdict": verdict.kind.value,
        "cause": verdict.cause,
        "late": [
            {"rank": each.rank, "host": each.host, "wait_s": each.wait_s, "share": each.share} for each in verdict.late
        ],
        "lines": kept,
        **(_loads(loads, fabric) if loads and fabric else {}),
        "bin_s": bins[0].end_s - bins[0].begin_s if bins else None,
        "bin_bytes": [each.bytes for each in bins],
        "bin_mpi_s": [each.mpi_s for each in bins],
    }


def _identify(run: Profile) -> Row:
    """Return the scheduler's data on a job; without a scheduler, the user is the profile's owner."""
    names = run.scheduler
    program = os.path.basename(run.command.partition(" ")[0])  # noqa: PTH119  (a command, not a path of this machine)
    return {
        "job": names.job_label or run.job,
        "task": names.array_task or None,
        "step": names.step or None,
        "name": names.name or program,
        "user": names.user or name_owner(Path(run.name).stat().st_uid),
        "partition": names.partition or None,
    }


def name_owner(uid: int) -> str:
    """Return the user name of a uid; if this machine does not know the user, the uid as text."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def identify_run(run: Profile) -> str:
    """Return the key of a run, 16 hex digits; OTF2 archive and recording of a run have the same key."""
    processes = sorted((run.hosts[rank.host].name, rank.pid, rank.start_ns) for rank in run.ranks)
    return hashlib.sha256(json.dumps([run.job, run.world_size, processes]).encode()).hexdigest()[:16]


def _last_moments(run: Profile) -> Iterator[int]:
    """Yield the last recorded times: ends of ranks (missing in a killed run), region events, and ends of intervals."""
    yield from (rank.stop_ns for rank in run.ranks if rank.stop_ns)
    yield from (mark.time_ns for mark in run.marks)
    yield from (int(each.end_ns.max(initial=0)) for each in (run.intervals, run.interval_times))


def _moment(unix_ns: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(microseconds=unix_ns // 1000)
    return moment.isoformat(timespec="microseconds")


def _times(verdict: Verdict) -> Row:
    names = ("run_s", "mpi_s", "wait_s", "split_error_s", "transfer_s", "unsplit_s", "line_rate_s", "gain_s")
    return {name: getattr(verdict, name) for name in names}


def _line(key: tuple[str, ...], sums: Any) -> Row:
    """Return sums over the calls at one or several call sites. A sum is None if any term is None."""

    def add(name: str) -> Any:
        values = [getattr(each, name) for each in sums]
        return None if None in values else sum(values)

    names = ("calls", "time_s", "wait_s", "transfer_s", "bytes")
    return {"operation": key[0], "site": key[1], **{name: add(name) for name in names}}


def _load_links(run: Profile, fabric: DatedFabric, placement: str | None) -> FabricLoads:
    placements = (placement,) if placement else ()
    options = TrafficOptions((run.name,), placements, flows_limit=DIAGNOSED_FLOWS)
    return load_demands(fabric.routed, [profile_traffic(run)], options)


def _loads(loads: FabricLoads, fabric: DatedFabric) -> Row:
    """Return the columns with bytes of each used link direction, and of each pair of ports."""
    table = loads.table(only_used=True)
    used: list[Any] = []
    for end in "ab":
        ports = zip(table["rail"], table[f"{end}_guid"], table[f"{end}_port"], strict=True)
        used += [(fabric.number[port], sent) for port, sent in zip(ports, table[f"{end}_bytes"], strict=True) if sent]
    used.sort()
    row: Row = {
        "fabric": fabric.name,
        "links": [link for link, _ in used],
        "link_bytes": [sent for _, sent in used],
        "unrouted_bytes": sum(loads.loads.bytes_unrouted.values()),
    }
    if flows := loads.traffic:
        ends = np.stack((flows.rail, flows.source_lid, flows.destination_lid))
        pairs, of = np.unique(ends, axis=1, return_inverse=True)
        sent = np.zeros(pairs.shape[1], np.uint64)
        np.add.at(sent, of.ravel(), flows.bytes)
        kept = np.sort(np.lexsort((np.arange(len(sent)), -sent.astype(np.float64)))[:PAIRS_KEPT])
        names = ("pair_rail", "pair_source", "pair_destination")
        row |= {name: column[kept].tolist() for name, column in zip(names, pairs, strict=True)}
        row["pair_bytes"] = sent[kept].tolist()
    return row


def _placement_gain(diagnosis: Diagnosis | None) -> float | None:
    """Return the seconds that another placement saves on the most loaded link; None if unknown."""
    if diagnosis is None:
        return None
    causes = [cause for cause in diagnosis.causes if cause.cause == PLACEMENT]
    return max((cause.max_time_s - cause.max_time_after_s for cause in causes), default=0.0)


def write_line(row: Row) -> str:
    """Return a summary as a line of JSON."""
    return json.dumps({name: row[name] for name in SCHEMA.names if row.get(name) is not None}, separators=(",", ":"))


def read_lines(path: Path) -> Iterator[pa.Table]:
    """Yield tables of `SCHEMA` from a file with a JSON line for each job.

    Raises:
        InputError: a line is invalid.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        number = 1
        while lines := _read_block(path, file, number):
            yield from parse_lines(path, lines, number)
            number += len(lines)


def _read_block(path: Path, file: Any, number: int) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while size < _LINES_AT_ONCE and (line := file.readline(_LONGEST_LINE)):
        if len(line) == _LONGEST_LINE:
            raise InputError(path, number + len(lines), f"a line below {_LONGEST_LINE} bytes", "a longer one")
        lines.append(line)
        size += len(line)
    return lines


def parse_lines(path: Path, lines: list[bytes], first: int) -> Iterator[pa.Table]:
    """Yield one table with the jobs in the lines; yield no table if all lines are blank.

    Raises:
        InputError: a line is invalid.
    """
    if not any(map(bytes.strip, lines)):
        return
    try:
        table = _parse(b"".join(lines))
        found = _find_invalid(table)
    except pa.ArrowException:
        found = (-1, "", "")
    if found is None:
        yield table
        return
    # Parse each line separately, to find the number of the invalid line.
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            invalid = _find_invalid(_parse(line))
        except pa.ArrowException as error:
            reason = str(error).partition("\n")[0]
            raise InputError(path, number, f"a job as JSON ({reason})", quote_found(line.strip())) from None
        if invalid:
            raise InputError(path, number, *invalid[1:])
    raise InputError(path, first, "a job on each line", "jobs that are valid alone, but not together")


def _parse(data: bytes) -> pa.Table:
    options = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    read = pj.read_json(BytesIO(data), pj.ReadOptions(block_size=max(len(data) // 2, 1 << 22) + 1), options)
    return read.select(SCHEMA.names).cast(SCHEMA)


def _find_invalid(table: pa.Table) -> tuple[int, str, str] | None:
    """Return the index of an invalid row, the expected value and the found value; None if all rows are valid."""
    for check in _checks(table):
        wrong, expected, column = check
        bad = np.flatnonzero(pc.fill_null(wrong, fill_value=False).to_numpy(zero_copy_only=False))
        if len(bad):
            return int(bad[0]), expected, quote_found(str(table[column][int(bad[0])].as_py()))
    return None


def _checks(table: pa.Table) -> Iterator[tuple[Any, str, str]]:
    """Yield checks: mask of invalid rows, expected value, and name of the checked column."""
    for name in REQUIRED:
        yield pc.is_null(table[name]), f'"{name}"', name
    yield pc.invert(pc.match_substring_regex(table["key"], "^[0-9a-f]{16}$")), '"key" of 16 hex digits', "key"
    latest = datetime.now(timezone.utc).replace(tzinfo=None) + FUTURE
    yield pc.less(table["began"], pa.scalar(_EARLIEST, _MOMENT)), '"began" after 2000', "began"
    for name in ("began", "ended"):
        expected = f'"{name}" no later than {latest:%Y-%m-%d %H:%M} UTC (now, with a margin for wrong clocks)'
        yield pc.greater(table[name], pa.scalar(latest, _MOMENT)), expected, name
    yield pc.less(table["ended"], table["began"]), '"ended" no earlier than "began"', "ended"
    for name in _NOT_NEGATIVE:
        # Compare integers with an integer: pyarrow cannot convert integers above 2^53 to float.
        most = _LARGEST_FRACTION if pa.types.is_floating(table[name].type) else np.iinfo(np.int64).max
        valid = pc.and_(pc.greater_equal(table[name], 0), pc.less_equal(table[name], most))
        yield pc.invert(valid), f'"{name}" from 0', name
    for names in PARALLEL:
        for name in names[1:]:
            lengths = (pc.fill_null(pc.list_value_length(table[each]), 0) for each in (names[0], name))
            yield pc.not_equal(*lengths), f'"{name}" as long as "{names[0]}"', name
    for name in (name for names in PARALLEL for name in names):
        column = table[name].combine_chunks()
        flat = column.flatten()
        # LIDs and rails are not checked here: `view_day` counts pairs with impossible ports.
        invalid = pc.less(flat, 0) if name in _AMOUNTS else pc.is_null(flat)
        bad = pc.indices_nonzero(pc.fill_null(invalid, fill_value=True))
        wrong = np.zeros(len(column), np.bool_)
        wrong[pc.list_parent_indices(column).take(bad).to_numpy(zero_copy_only=False)] = True
        yield pa.array(wrong), f'numbers{" from 0" if name in _AMOUNTS else ""} in "{name}"', name
    has_bins = pc.greater(pc.list_value_length(table["bin_bytes"]), 0)
    yield pc.and_(pc.is_null(table["bin_s"]), has_bins), '"bin_s" with "bin_bytes"', "bin_s"
    yield (
        pc.and_(pc.is_null(table["fabric"]), pc.greater(pc.list_value_length(table["links"]), 0)),
        '"fabric"',
        "fabric",
    )
