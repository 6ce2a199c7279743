# SPDX-License-Identifier: Apache-2.0
"""Exported symbols and needed libraries allow libibprof.so to run in any program."""

from __future__ import annotations

import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

LIBRARY = Path(str(files("ibprof") / "lib" / "libibprof.so"))
HEADER = Path(str(files("ibprof") / "include" / "ibprof.h"))
NEWEST_GLIBC = (2, 17)
MPI_NAME = re.compile(r"P?MPIX?_[A-Z]\w*")
VERBS = {
    *("ibv_open_device", "ibv_import_device", "ibv_create_qp", "ibv_modify_qp", "ibv_destroy_qp"),
    *("ibv_create_ah", "ibv_create_ah_from_wc", "ibv_destroy_ah"),
    *("ibv_get_async_event", "dlopen"),
    *("mlx5dv_open_device", "mlx5dv_create_qp", "mlx5dv_init_obj", "mlx5dv_devx_obj_create"),
    "mlx5dv_qp_ex_from_ibv_qp_ex",
    *("efadv_create_driver_qp", "efadv_create_qp_ex", "hnsdv_create_qp", "manadv_init_obj", "mlx4dv_init_obj"),
}


def dynamic_symbols() -> list[tuple[str, bool, bool]]:
    """Return (name@version, is_defined, is_weak) of each dynamic symbol."""
    shown = subprocess.run(["readelf", "--dyn-syms", "--wide", LIBRARY], capture_output=True, text=True, check=True)
    rows = [line.split() for line in shown.stdout.splitlines()]
    return [(row[7], row[6] != "UND", row[4] == "WEAK") for row in rows if len(row) >= 8 and row[0][:-1].isdigit()]


def test_only_what_is_interposed_and_what_the_header_names_is_exported() -> None:
    exported = {name for name, defined, _ in dynamic_symbols() if defined}
    named = {*re.findall(r"\b(ibprof_\w+)\(", HEADER.read_text()), "ibprof_nccl_recorder"}
    assert named
    assert {name for name in exported if not MPI_NAME.fullmatch(name)} == named | VERBS
    assert {"MPI_Init", "PMPI_Init", "MPI_Bcast", "PMPI_Bcast"} <= exported


def test_every_interposed_call_has_both_names() -> None:
    exported = {name for name, defined, _ in dynamic_symbols() if defined and MPI_NAME.fullmatch(name)}
    profiled = {name for name in exported if name.startswith("P")}
    assert {f"P{name}" for name in exported - profiled} == profiled


@pytest.mark.parametrize(
    "library", [LIBRARY, LIBRARY.with_name("libnccl-profiler-ibprof.so")], ids=lambda path: path.name
)
def test_no_symbol_is_newer_than_the_oldest_glibc_that_is_met(library: Path) -> None:
    shown = subprocess.run(["objdump", "--dynamic-syms", library], capture_output=True, text=True, check=True)
    versions = set(re.findall(r"GLIBC_(\d+(?:\.\d+)+)", shown.stdout))
    assert versions, "a library that needs no versioned symbol: is objdump's output read right?"
    assert {text for text in versions if tuple(map(int, text.split("."))) > NEWEST_GLIBC} == set()


def test_libc_alone_is_needed() -> None:
    shown = subprocess.run(["readelf", "--dynamic", "--wide", LIBRARY], capture_output=True, text=True, check=True)
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", shown.stdout) == ["libc.so.6"]
    # dlopen may refuse a library with static TLS or text relocations.
    assert "TEXTREL" not in shown.stdout


def test_what_other_c_libraries_lack_is_weak() -> None:
    """Programs on musl start only if libibprof.so has no strong references to symbols that only glibc defines."""
    glibc_only = {"dlvsym", "gnu_get_libc_version", "__fxstat", "__xstat", "__lxstat"}
    strong = {name.split("@")[0] for name, defined, weak in dynamic_symbols() if not defined and not weak}
    assert strong, "a library without undefined symbols: is readelf's output read right?"
    assert strong & glibc_only == set()
