# SPDX-License-Identifier: Apache-2.0
"""What objects show of themselves in a notebook: small tables without script, with every name as text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ibprof.show import format_bytes, format_seconds, printable

if TYPE_CHECKING:
    from ibprof.profile import Profile

_MOST = 8
_NS = 1e-9


def render_profile(run: Profile) -> str:
    """Show a profile: what ran, where, and what sent most."""
    from ibprof.summary import summarize  # noqa: PLC0415  (it imports the profile)

    said = summarize(run)
    head = [
        ("command", said["command"]),
        ("MPI", " ".join(said["mpi"].split())),
        ("ranks", f"{said['ranks_recorded']:,} of {said['world_size']:,} recorded, on {len(said['hosts']):,} host(s)"),
        ("sent", f"{format_bytes(said['bytes'])} in {said['messages']:,} messages"),
    ]
    operations = sorted(said["operations"], key=lambda each: -each["bytes"])[:_MOST]
    regions = sorted(said["regions"], key=lambda each: -each["bytes"])[:_MOST]
    parts = [
        f"<strong>{escape(f'Profile {run.name}')}</strong>",
        render_table((), head),
        render_table(
            ("operation", "bytes", "messages"),
            ((each["name"], format_bytes(each["bytes"]), f"{each['messages']:,}") for each in operations),
        ),
        render_table(
            ("region", "bytes", "longest"),
            (
                (each["name"], format_bytes(each["bytes"]), format_seconds(each["wall_ns_longest"] * _NS))
                for each in regions
            ),
        ),
        *(f"<p>not seen: {escape(sentence)}</p>" for sentence in said["not_seen"]),
    ]
    return "<div>" + "".join(parts) + "</div>"


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table as HTML."""
    heads = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{heads}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def escape(text: str) -> str:
    """Put a text into HTML, whatever it is."""
    return html.escape(printable(text), quote=True)
