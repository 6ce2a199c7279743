# SPDX-License-Identifier: Apache-2.0
"""Nodes, links and loads in one YAML file, for viewers like Boxfish: each link has the positions of its two ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TextIO

import yaml

from ibprof_converter.outputs.rows import Row


class _Line(dict[str, object]):
    """A row that is written on one line."""


_Dumper: type[yaml.SafeDumper] | type[yaml.CSafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The C form is ten times as fast, and is there unless PyYAML was built without libyaml."""

_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row.items(), flow_style=True)
)

# A path may hold bytes that are not UTF-8, which YAML has no place for; they become `\\udcNN`, as in the other outputs.
_Dumper.add_representer(str, lambda dumper, text: dumper.represent_str(text.encode(errors="backslashreplace").decode()))


def write_yaml(file: TextIO, about: Mapping[str, object], nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write a mapping of `about`, `nodes` and `links`; rows have the columns of nodes.csv and links.csv.

    Args:
        file: where to.
        about: what the loads are of: numbers and text.
        nodes, links: from `outputs.rows`.
    """
    document = {"about": dict(about), "nodes": [_Line(row) for row in nodes], "links": [_Line(row) for row in links]}
    yaml.dump(document, file, Dumper=_Dumper, sort_keys=False, width=1 << 16, allow_unicode=True)
