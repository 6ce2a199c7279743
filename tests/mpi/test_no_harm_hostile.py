# SPDX-License-Identifier: Apache-2.0
"""If somebody shortens or replaces recordings during a job, the job goes on. Further counts are kept.

For files that somebody creates under a guessed name, see csrc/tests/test_hostile_files.c.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing.machine import require_root
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, library
from ibprof_testing.mpi.no_harm import check_complete, check_no_harm, families_by_turns, find_any
from ibprof_testing.mpi.patterns import all_the_same, ring

RANKS = 2
NOBODY = 65534

# Each command changes a recording, as users may do by mistake. The test repeats the command until the job ends.
ATTACKS = {
    "truncate": 'truncate -s 0 "$file"',
    "redirect": 'true >"$file"',
    "copy": 'cp /etc/passwd "$file"',
    "punch": 'fallocate --punch-hole --offset 0 --length 1048576 "$file"',
}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that each user can write to."""
    folder = Path(tempfile.mkdtemp(prefix="ibprof-test-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)  # a shell may still change files


@pytest.mark.parametrize(("name", "attack"), families_by_turns(ATTACKS))
def test_its_user_shortens_a_recording(name: str, attack: str, build: Build, open_folder: Path) -> None:
    """The program does not run as root, because file modes do not limit root."""
    require_root("to become another user")
    mpi = find_any(name)
    program = shutil.copy(build(mpi, "copied.c"), open_folder / "program")
    copied_library = shutil.copy(library(), open_folder / "libibprof.so")
    (open_folder / "tmp").mkdir()
    (open_folder / "tmp").chmod(0o777)
    output = open_folder / "rec"
    rounds = f"for round in $(seq 40); do for file in {output}/*; do {ATTACKS[attack]}; done; sleep 0.05; done"
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = check_no_harm(
        mpi,
        RANKS,
        [program, "end"],
        output,
        libraries=[Path(copied_library)],
        variables=THROUGH_NETWORK,
        within=["sh", "-c", f'({rounds}) </dev/null >/dev/null 2>&1 & exec "$@"', "sh"],
        around=[*user, "env", f"TMPDIR={open_folder / 'tmp'}", "HOME=/"],
        cwd=open_folder / "tmp",
    )
    assert (done.returncode, done.stderr) == (0, "")
    profile = load_profile(output)
    check_complete(profile, RANKS)
    assert recorded(profile, operation="SENDRECV") == all_the_same(ring(RANKS), 750, 2)
