# SPDX-License-Identifier: Apache-2.0
"""Regions in Python programs call the functions of libibprof.so, or do nothing without libibprof.so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ibprof

USE = """
import ibprof
with ibprof.region("exchange"):
    pass
@ibprof.region("kr\\u00e4fte")
def work(x):
    return 2 * x
assert work(2) == 4
ibprof.mark("step"); ibprof.off(); ibprof.on()
"""

# A mock of libibprof.so, which prints the arguments of its functions.
TELL = """
#include <stdio.h>
void ibprof_region_begin(const char *name) { printf("begin %s\\n", name); fflush(stdout); }
void ibprof_region_end(void) { printf("end\\n"); fflush(stdout); }
void ibprof_region(const char *name) { printf("close %s\\n", name); fflush(stdout); }
void ibprof_off(void) { printf("off\\n"); fflush(stdout); }
void ibprof_on(void) { printf("on\\n"); fflush(stdout); }
"""


def use(**env: str) -> str:
    path = {"PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", USE]
    return subprocess.run(command, env=path | env, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def test_without_the_library_nothing_happens() -> None:
    assert use() == ""


def test_with_the_library_it_is_recorded(tmp_path: Path) -> None:
    library = tmp_path / "libtell.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=TELL, text=True, check=True)
    told = use(LD_PRELOAD=str(library)).split("\n")
    assert told == ["begin exchange", "end", "begin kräfte", "end", "close step", "off", "on", ""]


def test_an_exception_passes_through() -> None:
    try:
        with ibprof.region("x"):
            raise KeyError
    except KeyError:
        return
    raise AssertionError("swallowed")
