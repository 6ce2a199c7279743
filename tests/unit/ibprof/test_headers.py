# SPDX-License-Identifier: Apache-2.0
"""Only the C headers define numbers and layouts: Python reads all these numbers and layouts, and sees each change."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from enum import IntEnum
from types import ModuleType

import numpy as np
import pytest

from ibprof.native import headers
from ibprof.native.headers import kernels_headers, parse_headers
from ibprof.native.installed_files import cffi_text, find_kernels_headers, find_recording_header
from ibprof.native.libraries import load_kernels
from ibprof.profile import profile_data
from ibprof_converter.fabric import fabric_graph
from ibprof_converter.routing import spread, stanzas
from ibprof_lab.simulation.engine import packet_engine

MIRRORS = [
    (profile_data, "Source", "ibp_source", "IBP_SOURCE_"),
    (profile_data, "Kind", "ibp_kind", "IBP_KIND_"),
    (profile_data, "Direction", "ibp_direction", "IBP_DIRECTION_"),
    (profile_data, "Opcode", "ibp_opcode", "IBP_OPCODE_"),
    (profile_data, "MarkKind", "ibp_mark_kind", "IBP_MARK_"),
    (spread, "Reason", "ibp_reason", "IBP_"),
    (stanzas, "EntryForm", "ibp_entry_form", "IBP_ENTRY_"),
    (fabric_graph, "NodeKind", "ibp_node_kind", "IBP_NODE_"),
    (packet_engine, "Stop", "ibp_sim_stop", "IBP_SIM_"),
]
COUNTS = {"IBP_REASONS"}
"""Enumerators that count the enumerators before them."""


def installed_text() -> str:
    return "\n".join(cffi_text(header) for header in [find_recording_header(), *find_kernels_headers()])


def execute_again(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> ModuleType:
    """Execute a module again, under another name: the module reads the headers' numbers again."""
    spec = importlib.util.spec_from_file_location("executed_again", module.__file__)
    assert spec
    assert spec.loader
    copy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "executed_again", copy)  # dataclasses looks up the module in sys.modules
    spec.loader.exec_module(copy)
    return copy


@pytest.mark.parametrize(("module", "name", "enum", "prefix"), MIRRORS, ids=[row[1] for row in MIRRORS])
def test_a_number_changed_in_a_header_is_seen_in_python(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, enum: str, prefix: str
) -> None:
    text = installed_text()
    last, number = [pair for pair in parse_headers(text).enums[enum].items() if pair[0] not in COUNTS][-1]
    changed = parse_headers(text.replace(f"{last} = {number}", f"{last} = 77"))
    for reader in ("recording_header", "kernels_headers"):
        monkeypatch.setattr(headers, reader, lambda: changed)
    seen: type[IntEnum] = getattr(execute_again(monkeypatch, module), name)
    assert seen[last.removeprefix(prefix)] == 77
    assert getattr(module, name)[last.removeprefix(prefix)] == number


@pytest.mark.parametrize(
    ("name", "define"),
    [("PORT_ACTIVE", "IBP_PORT_ACTIVE"), ("SIZE_BINS", "IBP_SIZE_BINS"), ("UNKNOWN_PEER", "IBP_PEER_UNKNOWN")],
)
def test_a_define_changed_in_a_header_is_seen_in_python(
    monkeypatch: pytest.MonkeyPatch, name: str, define: str
) -> None:
    parsed = parse_headers(installed_text())
    number = parsed.constants[define]
    assert getattr(profile_data, name) == number
    changed = replace(parsed, constants={**parsed.constants, define: number + 1})
    monkeypatch.setattr(headers, "recording_header", lambda: changed)
    assert getattr(execute_again(monkeypatch, profile_data), name) == number + 1


@pytest.mark.parametrize(("module", "name", "enum", "prefix"), MIRRORS, ids=[row[1] for row in MIRRORS])
def test_no_enumerator_of_a_header_is_left_out(module: ModuleType, name: str, enum: str, prefix: str) -> None:
    theirs = parse_headers(installed_text()).enums[enum]
    members: type[IntEnum] = getattr(module, name)
    assert {f"{prefix}{member.name}": int(member) for member in members} == {
        key: value for key, value in theirs.items() if key not in COUNTS
    }


def test_structs_of_the_kernels_have_the_layout_that_cffi_gives_them() -> None:
    ffi = load_kernels().ffi
    types = kernels_headers().types
    assert {"ibp_sim_step", "ibp_sim_sample", "ibp_hop", "ibp_other_line", "ibp_event"} <= set(types)
    for name, record in types.items():
        ctype = ffi.typeof(f"struct {name}")
        assert record.itemsize == ffi.sizeof(ctype), name
        offsets = {field: part.offset for field, part in ctype.fields}
        assert {field: place[1] for field, place in (record.fields or {}).items()} == offsets, name


def test_constants_are_those_that_cffi_reads() -> None:
    library = load_kernels().lib
    constants = kernels_headers().constants
    assert constants["IBP_NONE"] == -1
    assert constants == {name: getattr(library, name) for name in dir(library) if name.isupper()}


def test_padding_arrays_and_texts_are_as_in_c() -> None:
    parsed = parse_headers(
        "#define IBP_LENGTH 0x3 /* three */\n"
        "struct ibp_sample {\n    char name[8];\n    uint8_t a, b[2]; /* ; */\n    double at;\n"
        "    uint16_t grid[2][IBP_LENGTH];\n    char names[IBP_LENGTH][4];\n};\n"
        "struct ibp_call {\n    const int32_t *of_pointer;\n};\n"
    )
    expected = [("name", "S8"), ("a", "u1"), ("b", "u1", 2), ("at", "f8"), ("grid", "u2", (2, 3)), ("names", "S4", 3)]
    assert parsed.types == {"ibp_sample": np.dtype(expected, align=True)}
    assert parsed.types["ibp_sample"].itemsize == 48


@pytest.mark.parametrize("member", ["struct ibp_other inner", "uint8_t bits : 3", "long number"])
def test_a_member_that_is_not_a_plain_number_is_refused(member: str) -> None:
    with pytest.raises(ValueError, match="expected a number or an array of numbers"):
        parse_headers(f"struct ibp_odd {{\n    {member};\n}};\n")
