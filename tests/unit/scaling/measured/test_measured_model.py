# SPDX-License-Identifier: Apache-2.0
"""Run times predicted from delays, calls and forwarding tables. Each part equals calculations by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import read_rail
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.scaling.measured.call_costs import (
    ALL_PAIRS,
    DOUBLING,
    MESSAGES,
    RING,
    ROOT,
    CallGroup,
    LinkSharing,
    TimedRun,
    time_collective,
)
from ibprof_lab.scaling.measured.loggp import fit_loggp, read_loggp
from ibprof_lab.scaling.measured.time_prediction import OutOfRangeError, TimeModel

LENGTHS = np.array([0, 1024, 4096, 16384, 65536, 262144])
START, PER_BYTE = 2e-6, 1e-9


class Line:
    """A network with a latency of 2 us and 1 GB/s."""

    def times(self, length: float) -> tuple[float, float]:
        """Return latency and transfer time of a message, in seconds."""
        return START, PER_BYTE * length


def alone(_pattern: str, _ranks: int) -> float:
    """Return 1 as the slow-down by shared links: no links are shared."""
    return 1.0


def make_delays(times: np.ndarray, hosts: tuple[str, ...], **attributes: str) -> Delays:
    """Return a matrix with the same delays for all pairs."""
    cube = np.broadcast_to(times[:, None, None], (len(times), len(hosts), len(hosts))).astype(np.float32)
    return Delays(hosts, LENGTHS[: len(times)], cube, attributes=attributes)


# -- LogGP


def test_a_line_is_found_again() -> None:
    found = fit_loggp(make_delays(START + PER_BYTE * LENGTHS, ("a", "b", "c")))
    (segment,) = found.segments
    assert segment.start.value == pytest.approx(START, rel=1e-4)
    assert segment.per_byte.value == pytest.approx(PER_BYTE, rel=1e-4)
    assert segment.start.low == pytest.approx(segment.start.high, rel=1e-4)
    assert found.pairs == 6
    assert found.misfit < 1e-5


def test_a_change_of_protocol_makes_two_lines() -> None:
    lengths = LENGTHS
    times = np.where(lengths <= 4096, 2e-6 + 2e-9 * lengths, 20e-6 + 1e-9 * lengths)
    short, long = fit_loggp(make_delays(times, ("a", "b"))).segments
    assert (short.last, long.first) == (4096, 16384)
    assert short.per_byte.value == pytest.approx(2e-9, rel=1e-3)
    assert long.start.value == pytest.approx(20e-6, rel=1e-3)


def test_pairs_of_one_host_are_left_out_and_differences_widen_the_interval() -> None:
    times = START + PER_BYTE * LENGTHS
    delays = make_delays(times, ("a", "a", "b", "c"))
    cube = delays.median.copy()
    cube[:, 0, 1] = cube[:, 1, 0] = 1e-3
    cube[:, 3, :] *= 1.5
    cube[:, :, 3] *= 1.5
    found = fit_loggp(Delays(delays.hosts, delays.lengths, cube))
    assert found.pairs == 10
    assert 1e-9 < found.segments[0].per_byte.value < 1.5e-9
    assert found.segments[0].per_byte.high > 1.1 * found.segments[0].per_byte.low


@pytest.mark.parametrize(
    ("count", "mode", "said"), [(1, "", "lengths of 0 bytes"), (6, "bandwidth", "--mode one_to_one")]
)
def test_delays_that_show_no_line(count: int, mode: str, said: str, tmp_path: Path) -> None:
    write_delays(tmp_path / "d.nc", make_delays(START + PER_BYTE * LENGTHS[:count], ("a", "b"), mode=mode))
    with pytest.raises(InconsistentError, match=said):
        read_loggp(tmp_path / "d.nc")


# -- algorithms


@pytest.mark.parametrize(
    ("operation", "ranks", "size", "seconds"),
    [
        ("BARRIER", 16, 0, 4 * START),
        ("BARRIER", 9, 0, 4 * START),
        ("BCAST", 8, 100, 3 * (START + 100 * PER_BYTE)),
        ("BCAST", 8, 8e6, 10 * START + 2 * 7 / 8 * 8e6 * PER_BYTE),
        ("ALLREDUCE", 16, 8, 4 * (START + 8 * PER_BYTE)),
        ("ALLREDUCE", 16, 1.6e6, 8 * START + 2 * 15 / 16 * 1.6e6 * PER_BYTE),
        ("ALLTOALL", 8, 1, 3 * START + 3 * 4 * PER_BYTE),
        ("ALLTOALL", 8, 1e5, 7 * (START + 1e5 * PER_BYTE)),
        ("ALLTOALLV", 8, 7e5, 7 * (START + 1e5 * PER_BYTE)),
        ("ALLGATHER", 4, 1e5, 2 * START + 3e5 * PER_BYTE),
        ("GATHER", 4, 1e5, 2 * START + 3e5 * PER_BYTE),
        ("SCAN", 4, 10, 2 * (START + 10 * PER_BYTE)),
        ("BCAST", 1, 1e9, 0),
    ],
)
def test_time_of_a_collective(operation: str, ranks: int, size: float, seconds: float) -> None:
    assert time_collective(operation, ranks, size, Line(), alone) == pytest.approx(seconds)


# -- shared links, from forwarding tables

TREE = "xgft:2:4,4:1,2"
"""16 hosts on four leaf switches, each with two uplinks."""


@pytest.mark.parametrize(
    ("pattern", "ranks", "share"),
    [
        (RING, 16, 1.0),
        # Two rounds stay within leaf switches. In two rounds, the messages of four hosts share two uplinks.
        (DOUBLING, 16, (1 + 1 + 2 + 2) / 4),
        (DOUBLING, 4, 1.0),
        # A host sends 12 of 15 messages to other leaves. Four hosts share two uplinks.
        (ALL_PAIRS, 16, 4 * 12 / 15 / 2),
        (ALL_PAIRS, 4, 1.0),
        (ROOT, 16, 1.0),
        # A host has 2 ranks, a leaf 8. Of a rank's 31 messages, 24 leave the leaf.
        (ALL_PAIRS, 32, 8 * 24 / 31 / 2),
    ],
)
def test_shares_of_a_tree(pattern: str, ranks: int, share: float) -> None:
    sharing = LinkSharing(read_rail(find_rails([TREE])[0]))
    assert sharing.share(pattern, ranks) == pytest.approx(share, rel=1e-6)


# -- prediction


def make_run(processes: int, size: float = 1e6, noise: float = 1.0) -> TimedRun:
    """Return a run: arithmetic (1 ns per operation), 0.1 s of serial work, 10 all-to-alls, 100 messages to a
    neighbour."""
    block = size / processes**2
    groups = {
        "ALLTOALL": CallGroup(10, block, 2 * 10 * time_collective("ALLTOALL", processes, block, Line(), alone)),
        MESSAGES: CallGroup(100, size / processes, 100 * (START + PER_BYTE * size / processes)),
    }
    computing = (0.1 + 1e-9 * size**1.5 / processes) * noise
    inside = sum(group.seconds for group in groups.values())
    return TimedRun(f"run{processes}", size, processes, computing + inside, computing, 0, groups)


def make_model(*runs: TimedRun, **others: int) -> TimeModel:
    """Return a model with a number of operations that grows with n^1.5."""
    return TimeModel(runs, lambda n: n**1.5, Line(), alone, **others)


def test_what_the_model_made_is_predicted_exactly() -> None:
    model = make_model(*map(make_run, (2, 4, 8)))
    for processes in (2, 16, 32):
        found, expected = model.predict(1e6, processes), make_run(processes)
        assert found.seconds == pytest.approx(expected.seconds, rel=1e-6)
        assert found.computing == pytest.approx(expected.computing, rel=1e-6)
        assert found.low == pytest.approx(found.high, rel=1e-5)
    assert [check.predicted for check in model.checks] == pytest.approx([check.measured for check in model.checks])


def test_weak_scaling_keeps_the_operations_of_a_process() -> None:
    model = make_model(make_run(2), make_run(4), make_run(8), make_run(8, 2e6))
    size = model.weak_size(8)
    assert size**1.5 / 8 == pytest.approx(1e9 / 2)
    assert model.predict(size, 8).seconds == pytest.approx(make_run(8, size).seconds, rel=1e-5)
    with pytest.raises(OutOfRangeError, match="needs a problem size beyond"):
        make_model(*map(make_run, (2, 4, 8))).weak_size(8)


def test_the_interval_contains_what_happens() -> None:
    """The noise is 5%. For about 95% of 200 series, the next noisy time is inside the 95% interval."""
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        noise = np.exp(0.05 * generator.standard_normal(6)).tolist()
        runs = [make_run(p, noise=each) for p, each in zip((2, 3, 4, 6, 8), noise, strict=False)]
        found, truth = make_model(*runs).predict(1e6, 16), make_run(16, noise=noise[5]).seconds
        inside += found.low <= truth <= found.high
    assert inside >= 180


def test_beyond_its_range_nothing_is_predicted() -> None:
    model = make_model(*map(make_run, (2, 4, 8)))
    assert model.processes == (2, 32)
    for processes in (1, 33):
        with pytest.raises(OutOfRangeError, match=f"{processes} processes are beyond the range of 2 to 32"):
            model.predict(1e6, processes)
    with pytest.raises(OutOfRangeError, match="problem size of 2e\\+06 is beyond"):
        model.predict(2e6, 8)
    with pytest.raises(OutOfRangeError, match="the fabric has slots for 16"):
        make_model(*map(make_run, (2, 4, 8)), most_processes=16).predict(1e6, 17)
    with pytest.raises(OutOfRangeError, match="measure longer messages"):
        make_model(*map(make_run, (2, 4, 8)), longest=1000).predict(1e6, 2)


def test_runs_that_scatter_give_no_answer() -> None:
    runs = [make_run(p, noise=noise) for p, noise in ((2, 1.0), (4, 4.0), (8, 0.5))]
    with pytest.raises(OutOfRangeError, match="do not determine the time of 16 processes"):
        make_model(*runs).predict(1e6, 16)


def test_an_operation_of_one_run_alone_is_named() -> None:
    runs = [make_run(p) for p in (2, 4, 8)]
    runs[2].groups["SCAN"] = CallGroup(1, 8, 1e-5)
    with pytest.raises(ValueError, match="SCAN: expected runs with at least two different numbers of processes"):
        make_model(*runs)


def test_a_run_without_time_is_refused() -> None:
    empty = TimedRun("empty", 1e6, 16, 0.0, 0.0, 0, {})
    with pytest.raises(ValueError, match="empty: expected a run that takes time"):
        make_model(*map(make_run, (2, 4, 8)), empty)


def test_operations_are_above_zero_in_all_runs() -> None:
    with pytest.raises(ValueError, match="run2: expected operations above 0 for a problem size of 1e\\+06, found -"):
        TimeModel([make_run(p) for p in (2, 4, 8)], lambda n: 1000 - n, Line(), alone)


@pytest.mark.parametrize(
    ("counts", "said"), [((2, 4), "3 runs or more"), ((2, 2, 4), "3 runs or more"), ((1, 2, 4), "2 processes")]
)
def test_too_few_runs(counts: tuple[int, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_model(*map(make_run, counts))
    assert math.isfinite(make_run(2).communicating)
