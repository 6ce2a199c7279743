# SPDX-License-Identifier: Apache-2.0
"""Run a case of a suite with and without ibprof, and compare the outcomes."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import ibprof
from ibprof.profile.unaccounted import find_unaccounted
from ibprof_testing import processes
from ibprof_testing.mpi.mpis import Mpi, environment, library

NOT_BUILT = "not built"
TIMED_OUT, NOT_RUN = "timed out", "not run"
SAME, UNSTEADY, WORSE, BETTER, DIFFERENT, UNKNOWN = "same", "unsteady", "worse", "better", "different", "unknown"
COLUMNS = ("mpi", "case", "ranks", "verdict", "without", "with", "unaccounted", "said")

# A line that ibprof prints on stderr.
OWN_LINE = re.compile(r"^ibprof: .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """A command of a suite.

    Attributes:
        name: name in the suite, with arguments.
        command: the program and its arguments.
        ranks: number of processes.
        variables: variables of the environment that the case needs.
        folder: working folder of the command.
        seconds: time limit of the command.
        preload: a library to preload in both runs; "" for none.
        success: pattern of stdout of a passing case; None if only the exit status counts.
    """

    name: str
    command: tuple[str, ...]
    ranks: int
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60
    preload: str = ""
    success: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcomes of a case with and without ibprof. Both variants are repeated if the first two outcomes differ.

    Attributes:
        case: the case.
        without: outcomes without ibprof.
        with_ibprof: outcomes with ibprof.
        unaccounted: operations with fewer bytes in ibprof's recording than calls asked for.
        said: the lines that ibprof printed.
    """

    case: Case
    without: tuple[str, ...]
    with_ibprof: tuple[str, ...]
    unaccounted: tuple[str, ...]
    said: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return how ibprof changed the outcome, as SAME, BETTER, WORSE, DIFFERENT, UNSTEADY or UNKNOWN."""
        without, recorded = set(self.without), set(self.with_ibprof)
        if NOT_RUN in recorded:
            return UNKNOWN
        if without == recorded:
            return SAME
        if without & recorded:
            return UNSTEADY
        if without == {"passed"}:
            return WORSE
        return BETTER if recorded == {"passed"} else DIFFERENT


def compare(mpi: Mpi, case: Case, scratch: Path, repeats: int) -> Comparison:
    """Run a case with and without ibprof; while the outcomes differ, repeat both variants, at most `repeats` times.

    After a time-out without ibprof, the case is not run with ibprof.
    """
    if not Path(case.command[0]).exists():
        return Comparison(case, (NOT_BUILT,), (NOT_BUILT,), ())
    without, recorded = [], []
    unaccounted, said = set[str](), set[str]()
    for _ in range(repeats):
        without.append(_run(mpi, case, None)[0])
        if without == [TIMED_OUT]:
            return Comparison(case, (TIMED_OUT,), (NOT_RUN,), ())
        recording = scratch / "profile.ibprof"
        shutil.rmtree(recording, ignore_errors=True)
        outcome, lines = _run(mpi, case, recording)
        recorded.append(outcome)
        said |= set(lines)
        unaccounted |= set(_find_unaccounted(recording))
        if set(without) == set(recorded):
            break
    return Comparison(case, tuple(without), tuple(recorded), tuple(sorted(unaccounted)), tuple(sorted(said)))


def append_rows(path: Path, mpi: str, comparisons: Iterable[Comparison]) -> Iterator[Comparison]:
    """Append each comparison to a CSV file with the columns `COLUMNS`, then yield the comparison."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.writer(file)
        if is_new:
            rows.writerow(COLUMNS)
        for done in comparisons:
            outcomes = ["; ".join(dict.fromkeys(runs)) for runs in (done.without, done.with_ibprof)]
            notes = ["; ".join(words) for words in (done.unaccounted, done.said)]
            rows.writerow([mpi, done.case.name, done.case.ranks, done.verdict, *outcomes, *notes])
            file.flush()
            yield done


def read_done(path: Path, mpi: str) -> set[str]:
    """Return the names of the cases that have a row from an interrupted run."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {row["case"] for row in csv.DictReader(file) if row["mpi"] == mpi}


def _run(mpi: Mpi, case: Case, recording: Path | None) -> tuple[str, list[str]]:
    """Run a case. Return the outcome as text (equal outcomes have equal text), and the lines that ibprof printed."""
    libraries = [] if recording is None else [str(library())]
    preload = {"LD_PRELOAD": ":".join(filter(None, [*libraries, case.preload]))} if libraries or case.preload else {}
    if recording is not None:
        preload["IBPROF_OUTPUT"] = str(recording)
    with subprocess.Popen(
        [mpi.program("mpirun"), "-n", str(case.ranks), *case.command],
        env=environment(mpi.variables) | dict(case.variables) | preload,
        cwd=case.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as launcher:
        try:
            stdout, stderr = launcher.communicate(timeout=case.seconds)
        except subprocess.TimeoutExpired:
            processes.end_session(launcher.pid)
            with suppress(subprocess.TimeoutExpired):  # give up if another session's process keeps the pipes open
                launcher.communicate(timeout=1)
            return TIMED_OUT, []
    printed, said = stdout.decode(errors="replace"), stderr.decode(errors="replace")
    own = [line.strip() for line in OWN_LINE.findall(said)]
    return _describe(case, launcher.returncode, printed, OWN_LINE.sub("", said)), own


def _describe(case: Case, status: int, printed: str, said: str) -> str:
    if status != 0:
        return f"status {status}"
    if case.success and not case.success.fullmatch(printed.strip()):
        errors = re.findall(r"Found +\d+ errors?", printed)
        return f"failed: {errors[0] if errors else 'other output'}"
    return "passed, with output on stderr" if said.strip() else "passed"


def _find_unaccounted(recording: Path) -> Iterator[str]:
    """Yield the operations whose calls asked for more bytes than ibprof saw."""
    if not recording.exists():
        return
    for gap in find_unaccounted(ibprof.load_profile(recording)):
        yield f"{gap.operation} {gap.seen_bytes} of {gap.least_bytes}"
