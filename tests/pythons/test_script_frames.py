# SPDX-License-Identifier: Apache-2.0
"""ibprof finds the line of a .py file that calls a C function. Python itself returns the expected frames.

Real interpreters run `programs/cases.py`. A function of an extension module releases the interpreter's lock, as mpi4py
does. The function finds its caller by ibprof's code, then asks Python for the same frames.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof_testing.machine import find_program
from ibprof_testing.paths import ROOT
from ibprof_testing.pythons import VERSIONS, find_libpython, find_python

PROGRAMS = Path(__file__).parent / "programs"
CASES = PROGRAMS / "cases.py"
SOURCES = ROOT / "csrc" / "preload"
STRICT = ("-fsanitize=undefined", "-fno-sanitize-recover=undefined")

BuildProbe = Callable[..., Path]


def compile_with_module(output: Path, *arguments: str | Path) -> Path:
    """Compile a program together with ibprof's module."""
    compiler = [find_program("cc", package="gcc"), "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
    platform = [SOURCES / "platform" / f"{name}.c" for name in ("guarded_read", "loaded_objects", "loader")]
    module: list[str | Path] = [f"-I{SOURCES}", *platform, *sorted((SOURCES / "python").glob("*.c"))]
    subprocess.run([*compiler, *arguments, *module, "-o", output, "-ldl", "-lpthread"], check=True)
    return output


@pytest.fixture(scope="session")
def build_probe(tmp_path_factory: pytest.TempPathFactory) -> BuildProbe:
    built: dict[tuple[str, ...], Path] = {}

    def build(*options: str) -> Path:
        """Return the folder of the extension module `probe`."""
        if options not in built:
            folder = tmp_path_factory.mktemp("probe")
            flags = ("-fPIC", "-shared", "-fvisibility=hidden", *options)
            compile_with_module(folder / "probe.so", *flags, PROGRAMS / "probe.c")
            built[options] = folder
        return built[options]

    return build


def check_cases(python: Path | str, probe: Path, environment: dict[str, str] | None = None) -> None:
    """Run all cases. Fail if the result of a case is missing: the interpreter may have ended early."""
    run = subprocess.run(
        [python, CASES, probe], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    names = re.findall(r"^@case\n(?:@\w+\n)*def (\w+)", CASES.read_text(), re.MULTILINE)
    assert len(names) > 20
    expected = sorted(f"right {name}" for name in (*names, "at_shutdown"))
    assert sorted(run.stdout.splitlines()) == ["at exit: 0", *expected], run.stderr
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version(build_probe: BuildProbe, version: str) -> None:
    check_cases(find_python(version), build_probe(*STRICT, *(["-DFREE_THREADED"] if version.endswith("t") else [])))


def test_this_interpreter(build_probe: BuildProbe) -> None:
    """The cases run on this machine's usual interpreter, with its standard library."""
    check_cases(sys.executable, build_probe(*STRICT))


def test_nothing_beyond_an_object_is_read(build_probe: BuildProbe) -> None:
    """AddressSanitizer finds reads beyond an object, because each Python object is in a separate block of memory."""
    cc = find_program("cc", package="gcc")
    sanitizer = subprocess.run([cc, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {
        "LD_PRELOAD": sanitizer.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    check_cases(sys.executable, build_probe("-fsanitize=address"), environment)


def test_an_interpreter_whose_symbols_are_hidden(tmp_path: Path) -> None:
    """A program opens libpython as a plug-in, starts the interpreter and ends it, twice."""
    program = compile_with_module(tmp_path / "embed", *STRICT, PROGRAMS / "embed.c")
    script = "import sys\ndef solve():\n\n    sys.audit('probe')\nsolve()\nsys.audit('probe')"
    run = subprocess.run([program, find_libpython(), script], capture_output=True, text=True, timeout=120, check=True)
    started = ["before: 0", "without frames: 0", "<string>:4 solve", "<string>:6 <module>"]
    assert run.stdout.splitlines() == [*started, "without frames: 0", "after: 0"] * 2
