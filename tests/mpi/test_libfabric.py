# SPDX-License-Identifier: Apache-2.0
"""With each protocol of MPICH over libfabric, each byte is counted once, at the sender.

Programs note their messages, or use algorithms with a known matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ibprof.profile.missing_data import describe_gaps
from ibprof_testing.mpi import conformance
from ibprof_testing.mpi.conformance import KINDS, Kind, Target
from ibprof_testing.mpi.matrices import load_complete, read_tally, recorded
from ibprof_testing.mpi.mpis import (
    INTEL,
    MPICH_FROM_PYPI,
    THROUGH_NETWORK,
    Build,
    check_accounted,
    find_mpich_like,
    library,
    run_mpi,
)

MPICH_4, MPICH_5 = MPICH_FROM_PYPI
OVER_LIBFABRIC = {**THROUGH_NETWORK, "MPIR_CVAR_CH4_NETMOD": "ofi"}

# The smallest threshold with which the rendezvous protocol of MPICH 5.0.2 works; otherwise "Message truncated".
RENDEZVOUS = {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "1000"}
ACTIVE = {"MPIR_CVAR_CH4_OFI_ENABLE_TAGGED": "0"}
PROTOCOLS = ("auto", "pipeline", "read", "write", "direct")

SETTINGS = {
    "by default": (MPICH_5, {}),
    **{
        f"rendezvous, {protocol}": (MPICH_5, RENDEZVOUS | {"MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL": protocol})
        for protocol in PROTOCOLS
    },
    "active messages": (MPICH_5, ACTIVE),
    "active messages in parts": (MPICH_5, ACTIVE | {"MPIR_CVAR_CH4_OFI_AM_LONG_FORCE_PIPELINE": "1"}),
    "rendezvous of MPICH 4": (MPICH_4, RENDEZVOUS),
    "active messages of MPICH 4": (MPICH_4, ACTIVE),
}


# Rendezvous requests have no size if the provider carries too little data with a message.
LITTLE_DATA, NO_DATA = {"DATA_BYTES": "4"}, {"DATA_BYTES": "0"}
SHORT_MESSAGES = {"MESSAGE_BYTES": "100000"}
NARROW = {
    **{
        f"little data, {protocol}": (MPICH_5, LITTLE_DATA | RENDEZVOUS | {"MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL": protocol})
        for protocol in PROTOCOLS
    },
    "no data": (MPICH_5, NO_DATA | RENDEZVOUS),
    "no data, in MPICH 4": (MPICH_4, NO_DATA | RENDEZVOUS),
    "short messages": (MPICH_5, SHORT_MESSAGES),
    "short messages and little data": (MPICH_5, SHORT_MESSAGES | LITTLE_DATA),
    "short messages of MPICH 4": (MPICH_4, SHORT_MESSAGES),
    "short messages of MPICH 4, with little data": (MPICH_4, SHORT_MESSAGES | LITTLE_DATA),
    "a first part, and a rest that the receiver reads": (
        MPICH_4,
        SHORT_MESSAGES | {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": str(1 << 30)},
    ),
}

SHORT = (
    *("by default", "rendezvous, read", "rendezvous, direct", "active messages in parts", "rendezvous of MPICH 4"),
    *("little data, pipeline", "little data, write", "no data, in MPICH 4", "short messages and little data"),
    "a first part, and a rest that the receiver reads",
)
"""Settings in the short form of the tests: each protocol with one provider, each kind of message, and each MPICH."""


def in_every_run(settings: Iterable[str]) -> list[object]:
    return [each if each in SHORT else pytest.param(each, marks=pytest.mark.full) for each in settings]


@pytest.mark.parametrize("setting", in_every_run(SETTINGS))
def test_messages_of_all_sizes(setting: str, build: Build, tmp_path: Path) -> None:
    name, variables = SETTINGS[setting]
    mpi = find_mpich_like(name)
    books = tmp_path / "books"
    books.mkdir()
    env = {**OVER_LIBFABRIC, **variables, "TALLY": str(books)}
    run_mpi(mpi, 3, [build(mpi, "rendezvous.c")], recording=tmp_path / "recording", env=env)
    check(tmp_path / "recording", books)


@pytest.mark.parametrize("setting", in_every_run(NARROW))
def test_messages_over_a_narrow_provider(setting: str, build: Build, tmp_path: Path) -> None:
    name, variables = NARROW[setting]
    mpi = find_mpich_like(name)
    books = tmp_path / "books"
    books.mkdir()
    preloaded = f"{library()}:{build(mpi, 'narrow_fabric.c', '-shared', '-fPIC')}"
    of_ibprof = {"LD_PRELOAD": preloaded, "IBPROF_OUTPUT": str(tmp_path / "recording")}
    env = {**OVER_LIBFABRIC, **variables, **of_ibprof, "TALLY": str(books)}
    run_mpi(mpi, 3, [build(mpi, "rendezvous.c")], env=env)
    check(tmp_path / "recording", books)
    check_accounted(tmp_path / "recording")


def check(recording: Path, books: Path) -> None:
    """Compare a recording with the messages that the program noted in `books`."""
    profile = load_complete(recording, 3)
    wanted = read_tally(books)
    assert {operation: recorded(profile, operation=operation) for operation in wanted} == wanted
    assert {rank.source.name for rank in profile.ranks} == {"LIBFABRIC"}
    others = recorded(profile).keys() - {pair for matrix in wanted.values() for pair in matrix}
    assert all(recorded(profile)[pair][0] == 0 for pair in others), "a barrier sends no bytes"


@pytest.mark.parametrize("name", [INTEL, MPICH_5])
def test_what_is_counted_from_arguments_counts_once(name: str, build: Build, tmp_path: Path) -> None:
    """In Intel MPI, the receiver fetches long puts and partitions, while it waits in any call."""
    program = build(find_mpich_like(name), "large_puts.c")
    run_mpi(find_mpich_like(name), 2, [program, "400000"], recording=tmp_path, env=OVER_LIBFABRIC)
    profile = load_complete(tmp_path, 2)
    for operation in ("PUT", "PSEND_INIT"):
        assert recorded(profile, operation=operation) == {(0, 1): (400000, 1)}
    assert recorded(profile, operation="UNATTRIBUTED") == {}
    assert any("including data of calls that are counted from their arguments" in gap for gap in describe_gaps(profile))


QUICK = ("point-to-point", "one-sided", "nonblocking collectives that overlap", "partitioned point-to-point")
VARIANTS = {"rendezvous": RENDEZVOUS, "active messages": ACTIVE}
CELLS = [
    pytest.param(
        Target(name, "libfabric", "LIBFABRIC", OVER_LIBFABRIC | variables),
        kind,
        id=f"{name}-{variant}-{kind.language}-{kind.title}".replace(" ", "_"),
        marks=[] if name == MPICH_5 and kind.title in QUICK else [pytest.mark.full],
    )
    for name in MPICH_FROM_PYPI
    for variant, variables in VARIANTS.items()
    for kind in KINDS
    if conformance.has(Target(name, "libfabric", "LIBFABRIC", {}), kind)
]


@pytest.mark.parametrize(("target", "kind"), CELLS)
def test_calls_of_all_kinds(target: Target, kind: Kind, build: Build, tmp_path: Path) -> None:
    profile, expected = conformance.record(target, kind, build, tmp_path)
    assert {rank.source.name for rank in profile.ranks} == {"LIBFABRIC"}
    assert expected
    assert conformance.found(profile, expected) == expected
    assert recorded(profile, operation="UNATTRIBUTED") == {}
