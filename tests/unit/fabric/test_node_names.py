# SPDX-License-Identifier: Apache-2.0
"""Numbers in names of nodes are sorted by value. An adapter's name is a word of its description."""

from __future__ import annotations

from ibprof_converter.fabric.node_names import adapter_name, is_adapter_named, natural_key


def test_numbers_in_names_order_by_value() -> None:
    names = ["", "7", "12", "host", "host0b", "host1", "host009", "host10", "host10a2", "host10a10", "hostel"]
    assert sorted(set(names), key=natural_key) == names
    assert natural_key("host1") == natural_key("host01")


def test_number_of_any_length_has_a_place() -> None:
    longest = "n" + "9" * 5000  # int() converts fewer digits
    assert sorted([longest, "n10", "n9"], key=natural_key) == ["n9", "n10", longest]


def test_an_adapter_is_named_by_a_word_of_its_description() -> None:
    name = adapter_name("gpu001 MLX5_0 (rail 1)", "gpu001")
    assert name == "MLX5_0 (rail 1)"
    assert is_adapter_named(name, {"mlx5_0"})
    assert not is_adapter_named(name, {"mlx5"})
    assert adapter_name("gpu001", "gpu001") == ""
