# SPDX-License-Identifier: Apache-2.0
"""Sanitizers find no error in libibprof.so while it records the programs of all no-harm tests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi.mpis import Build
from ibprof_testing.mpi.no_harm import FAMILIES, MPICH, find_any, launch, preload
from ibprof_testing.paths import ROOT

pytestmark = pytest.mark.full

MODES = ("handlers", "descriptors", "forks", "shells", "spawns", "threads", "regions", "names", "limits")
COMMON = "log_path={log}:handle_segv=0:handle_sigbus=0"
# Leaks and locks of the program, MPI and the allocator are not tested.
OPTIONS = {
    "ASAN_OPTIONS": COMMON + ":detect_leaks=0:allow_user_segv_handler=1",
    "UBSAN_OPTIONS": COMMON + ":print_stacktrace=1",
    "TSAN_OPTIONS": COMMON + ":exitcode=0:detect_deadlocks=0:die_after_fork=0:report_signal_unsafe=0",
}
# Each setting takes a different path through the wrappers.
RECORDED = {"sites": {}, "times": {"IBPROF_TIME": "1"}, "callers": {"IBPROF_TIME": "1", "IBPROF_CALLERS": "4"}}
RUNTIME = {"ON": "libasan.so", "thread": "libtsan.so"}
# ThreadSanitizer ends the process if it cannot allocate 168 KiB for its own records of atomic variables.
SPARE_KIB = {"ON": 0, "thread": 1024}


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """Return the sanitizer's library and the libibprof.so built with it, in the order of preloading."""

    @functools.cache
    def build_one(sanitizer: str) -> list[Path]:
        folder = tmp_path_factory.mktemp(sanitizer)
        settings = ["-DCMAKE_BUILD_TYPE=Debug", "-DSKBUILD_PROJECT_VERSION=0", f"-DIBPROF_SANITIZE={sanitizer}"]
        processes.run(["cmake", "-S", ROOT, "-B", folder, *settings], check=True)
        processes.run(["cmake", "--build", folder, "--target", "ibprof"], check=True, timeout=600)
        asked = ["cc", f"-print-file-name={RUNTIME[sanitizer]}"]
        runtime = Path(processes.run(asked, check=True).stdout.strip())
        return [runtime.resolve(), folder / "csrc" / "preload" / "libibprof.so"]

    return build_one


# MPICH is not tested with ThreadSanitizer: even without ibprof, MPICH 4.3.2 fails with ThreadSanitizer.
@pytest.mark.parametrize(
    ("sanitizer", "name"),
    [(sanitizer, name) for sanitizer in RUNTIME for name in FAMILIES if (sanitizer, name) != ("thread", MPICH)],
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("recorded", RECORDED)
def test_no_wrong_step(
    sanitizer: str,
    name: str,
    mode: str,
    recorded: str,
    sanitized: Callable[[str], list[Path]],
    build: Build,
    tmp_path: Path,
) -> None:
    mpi = find_any(name)
    program = build(mpi, "unruly.c", "-pthread")
    variables = {name: value.format(log=tmp_path / "report") for name, value in OPTIONS.items()}
    variables |= RECORDED[recorded]
    variables |= {"IBPROF_OUTPUT": str(tmp_path / "profile.ibprof"), "UNRULY_CHILD": "echo a child; exit 3"}
    variables["UNRULY_SPARE_KIB"] = str(SPARE_KIB[sanitizer])
    # By default, Open MPI 5's launcher chooses an address where ThreadSanitizer cannot map memory.
    around = ["env", "PMIX_MCA_gds=hash"]
    without = launch(mpi, 2, [program, mode], variables, around=around)
    within = launch(mpi, 2, [program, mode], variables | preload(*sanitized(sanitizer)), around=around)
    reports = "".join(report.read_text() for report in tmp_path.glob("report*")).split("==================")
    assert not [report for report in reports if "preload" in report], reports
    assert (within.returncode, within.stdout) == (without.returncode, without.stdout), within.stderr
