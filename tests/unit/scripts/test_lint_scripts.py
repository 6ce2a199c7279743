# SPDX-License-Identifier: Apache-2.0
"""The lint scripts find each kind of fault in a small tree, and nothing in a tree without faults."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_testing.paths import ROOT

SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
CONVERTER = "converter/ibprof_converter"
CLEAN = {
    "include": {
        "csrc/include/ibprof.h": "",
        "csrc/preload/platform/clock.h": "#include <time.h>\n",
        "csrc/preload/calls/lifecycle.h": '#include "platform/clock.h"\n#include <ibprof.h>\n',
        "csrc/kernels/sums/sums.c": "",
        "csrc/kernels/spread/spread.h": "",
    },
    "namespace": {
        "ibprof/cli/run.py": "import argparse\ndef _run_options(a: argparse.Namespace) -> int: ...\n",
        f"{CONVERTER}/cli/view.py": "import argparse\ndef build_view(a: argparse.Namespace | None) -> int: ...\n",
    },
    "import": {
        "ibprof/__init__.py": "",
        f"{CONVERTER}/__init__.py": "",
        f"{CONVERTER}/a.py": "def f():\n    # Slow.\n    import numpy  # noqa: PLC0415\n    import scipy\n",
        f"{CONVERTER}/b.py": "from ibprof_converter import a\ndef f():\n    import numpy  # noqa: PLC0415  (slow)\n",
    },
    "licence": {"a.py": SPDX, "run": f"#!/bin/sh\n{SPDX}", "notes": "of anybody", ".venv/a.py": ""},
    "name": {"ibprof/a.py": "class A: ...", f"{CONVERTER}/b.py": "class B: ...\nclass _A: ...", "ibprof/cli/b.py": ""},
}


def run_lint(kind: str, folder: Path, *faults: tuple[str, str]) -> tuple[int, str]:
    """Run a copy of a lint script in a tree with faults; return the exit status and the output."""
    for name, text in (*CLEAN[kind].items(), *faults):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    script = folder / "scripts" / f"check-{kind}s.py"
    script.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "scripts" / script.name, script)
    run = subprocess.run([sys.executable, script], capture_output=True, check=False, text=True)
    assert "Traceback" not in run.stderr
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("kind", CLEAN)
def test_a_tree_without_faults_passes(kind: str, tmp_path: Path) -> None:
    assert run_lint(kind, tmp_path) == (0, "")


PLATFORM, SUMS, CALLS = "csrc/preload/platform/a.c", "csrc/kernels/sums/sums.c", "csrc/preload/calls/a.c"
TO_THE_RIGHT = "a.c:1: preload/calls/lifecycle.h stands to the right"
SPREAD = "kernels/spread/spread.h stands to the right"
TAKES = "a.py:1: show takes a Namespace"
COMMAND = "ibprof/cli/a.py"
LATE = "ibprof/c.py:2: say why this import is late"
FAULTS = [
    ("include", PLATFORM, '#include "calls/lifecycle.h"\n', TO_THE_RIGHT),
    ("include", PLATFORM, "#include <calls/lifecycle.h>\n", TO_THE_RIGHT),
    ("include", PLATFORM, '#include"calls/lifecycle.h"\n', TO_THE_RIGHT),
    ("include", PLATFORM, '#include "../calls/lifecycle.h"\n', TO_THE_RIGHT),
    ("include", SUMS, '\n#include "../spread/spread.h"\n', f"sums.c:2: {SPREAD}"),
    ("include", CALLS, '#include "spread/spread.h"\n', f"a.c:1: {SPREAD}"),
    ("include", CALLS, '#include "nowhere.h"\n', "a.c:1: nowhere.h stands to the right"),
    ("include", "csrc/preload/platform/clock.h", '#include "calls/lifecycle.h"\n', "closes a cycle"),
    ("include", "csrc/preload/platform2/a.c", "", "csrc/preload/platform2/a.c: its folder is missing in"),
    ("include", "csrc/preload/a.c", "", "csrc/preload/a.c: its folder is missing in"),
    ("include", "csrc/more/a.h", "", "csrc/more/a.h: its folder is missing in"),
    ("namespace", "ibprof/load.py", "import argparse\n", "ibprof/load.py:1: argparse is imported"),
    ("namespace", f"{CONVERTER}/a/cli/b.py", "import argparse\n", "a/cli/b.py:1: argparse is imported"),
    ("namespace", COMMAND, "def show(a: argparse.Namespace): ...\n", TAKES),
    ("namespace", COMMAND, "def show(a: 'ap.Namespace | None'): ...\n", TAKES),
    ("namespace", COMMAND, "async def show(*a: Namespace): ...\n", TAKES),
    ("namespace", COMMAND, "from argparse import Namespace as N\n", "a.py:1: Namespace is imported by another"),
    ("namespace", COMMAND, "class Options:\n    a: Namespace\n", "a.py:2: Options holds a Namespace"),
    ("import", "ibprof/c.py", "def f():\n    import numpy\n", LATE),
    ("import", "ibprof/c.py", "async def f():\n    import numpy  # noqa: F401, PLC0415\n", LATE),
    ("import", "ibprof/c.py", "def f():\n    from numpy import (  # noqa: PLC0415\n        x)\n", LATE),
    ("import", f"{CONVERTER}/a.py", "def f():\n    # Slow.\n    import ibprof_converter.b\n", "in a cycle"),
    ("licence", "b/a.cpp", "int a;\n", "b/a.cpp: expected 'SPDX-"),
    ("licence", "b/a.yaml", "a: 1\n", "b/a.yaml: expected 'SPDX-"),
    ("licence", "b/run-it", "#!/bin/sh\n", "b/run-it: expected 'SPDX-"),
    ("licence", ".ci/a.sh", "true\n", ".ci/a.sh: expected 'SPDX-"),
    ("name", "ibprof/text/b.py", "", "modules: b: ibprof/text/b.py"),
    ("name", f"{CONVERTER}/cli/c.py", "class A: ...", "classes: A: ibprof/a.py"),
]


@pytest.mark.parametrize(("kind", "name", "text", "said"), FAULTS)
def test_a_fault_is_named_with_its_place(kind: str, name: str, text: str, said: str, tmp_path: Path) -> None:
    status, printed = run_lint(kind, tmp_path, (name, text))
    assert status == 1
    assert said in printed
