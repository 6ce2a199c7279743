# SPDX-License-Identifier: Apache-2.0
"""A profile as HTML in a notebook."""

from __future__ import annotations

from ibprof.profile.profile_data import Profile
from ibprof.profile.profile_summary import summarize
from ibprof.text.call_names import name_call
from ibprof.text.notebook_html import escape, render_html, render_table
from ibprof.text.quantities import format_bytes, format_seconds

_MOST = 8
_NS = 1e-9


@render_html.register
def render_profile(run: Profile) -> str:
    """Return a profile as HTML for a notebook: the command, its hosts, and the largest senders."""
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
            ((name_call(each["name"]), format_bytes(each["bytes"]), f"{each['messages']:,}") for each in operations),
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
