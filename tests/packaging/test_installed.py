# SPDX-License-Identifier: Apache-2.0
"""The installed package is the package under test, and has all files and entry points."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import pytest

import ibprof
import ibprof_converter

IBPROF = distribution("ibprof")
COMMANDS = sorted(point.name for point in IBPROF.entry_points if point.group == "ibprof.commands")
SCRIPTS = sorted(point.name for point in IBPROF.entry_points if point.group == "console_scripts")


@pytest.mark.parametrize("package", [ibprof, ibprof_converter], ids=lambda package: package.__name__)
def test_the_installed_package_is_tested(package: object) -> None:
    file = Path(getattr(package, "__file__", ""))
    assert file.is_relative_to(sysconfig.get_path("platlib")), "run `make test`, or install: pip install '.[dev]'"


def test_the_wheel_holds_what_it_must() -> None:
    files = {str(path) for path in IBPROF.files or ()}
    data = "ibprof_converter/data"
    assert files >= {
        "ibprof/lib/kernels_interface.py",
        "ibprof/lib/otf2_interface.py",
        "ibprof/lib/libibprof.so",
        "ibprof/lib/libibprof_kernels.so",
        "ibprof/lib/libibprof_lines.so",
        "ibprof/lib/libibprof_lines.LICENSE",
        "ibprof/lib/libibprof_otf2.so",
        "ibprof/lib/libibprof_otf2.COPYING",
        "ibprof/include/ibprof.h",
        "ibprof/include/ibprof_kernels.h",
        "ibprof/include/ibprof_kernels/routes.h",
        "ibprof/include/ibprof_recording.h",
        "ibprof/py.typed",
        "ibprof/spank/ibprof_spank.c",
        "ibprof_converter/py.typed",
        f"{data}/exchange/exchange.c",
        f"{data}/exchange/exchange.py",
        f"{data}/demo-fabric/opensm-subnet.lst",
        f"{data}/demo-fabric/opensm.fdbs",
        f"{data}/demo-fabric/README.md",
    }
    top = {path.split("/", 1)[0] for path in files}
    assert {name for name in top if not name.startswith(("ibprof-", ".."))} == {
        "ibprof",
        "ibprof_converter",
        "ibprof_lab",
    }


def test_the_wheel_is_for_any_python_3_on_this_kind_of_linux() -> None:
    tags = [line.removeprefix("Tag: ") for line in (IBPROF.read_text("WHEEL") or "").splitlines() if "Tag: " in line]
    assert len(tags) == 1
    assert tags[0].startswith("py3-none-linux_")


def test_libraries_of_the_laboratory_alone_are_an_extra() -> None:
    needed = [line.replace('"', "'") for line in IBPROF.requires or ()]
    of_lab = {re.split("[ >=;]", line)[0] for line in needed if "extra == 'lab'" in line}
    assert of_lab == {"matplotlib", "netCDF4", "networkx", "numexpr", "scikit-learn", "scipy", "threadpoolctl"}
    assert not of_lab & {re.split("[ >=;]", line)[0] for line in needed if "extra ==" not in line}


def test_names_of_scripts_and_commands() -> None:
    of_the_converter = ["latency", "layout", "place", "report", "routes", "scaling", "sim", "site", "topology", "view"]
    assert sorted(["ibprof", *(f"ibprof-{name}" for name in of_the_converter)]) == SCRIPTS
    recorder = ["calls", "collect", "completion", "doctor", "env", "info", "lib", "matrix", "nccl", "run"]
    assert sorted([*recorder, *of_the_converter, "demo", "diff", "rings", "watch"]) == COMMANDS


@pytest.mark.parametrize(
    "command",
    [[name] for name in SCRIPTS] + [["ibprof", name] for name in COMMANDS],
    ids=" ".join,
)
def test_help_has_an_example_and_comes_at_once(command: list[str]) -> None:
    script = Path(sysconfig.get_path("scripts")) / command[0]
    shown = subprocess.run(
        [sys.executable, script, *command[1:], "--help"], capture_output=True, text=True, timeout=20, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert "example" in shown.stdout.lower()
    # `ibprof layout` runs `ibprof-layout`, and the help shows the form that the user typed.
    assert " ".join(command) in shown.stdout or "-".join(command) in shown.stdout


def test_help_imports_nothing_slow() -> None:
    """The time of --help depends on the machine, but the imports of --help do not."""
    code = (
        "import sys\n"
        "from ibprof.cli.main import main\n"
        "sys.argv = ['ibprof', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'numpy', 'scipy', 'matplotlib', 'otf2', 'networkx'} & set(sys.modules)\n"
        "sys.exit(f'imported: {slow}' if slow else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr


def test_questions_to_simulations_import_no_matplotlib() -> None:
    code = "import sys, ibprof_lab.cli.sim_commands; print({'numpy', 'matplotlib', 'networkx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'numpy'}\n"
