# SPDX-License-Identifier: Apache-2.0
"""Sums over a log of Darshan, read with PyDarshan: `python -m` this module prints them as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

NOT_INSTALLED = 4
"""Exit status where PyDarshan is missing."""

_MODULE = "POSIX"


def main() -> int:
    """Print the fields of `DarshanLoad` for the log that the first argument names."""
    try:
        import darshan  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        return NOT_INSTALLED
    report = darshan.DarshanReport(sys.argv[1], read_all=False)
    if _MODULE in report.modules:
        report.mod_read_all_records(_MODULE, dtype="pandas")
    tables = [table for table in report.records.get(_MODULE, ()) if len(table["counters"])]
    written, read = (_sum(tables, f"POSIX_BYTES_{kind}") for kind in ("WRITTEN", "READ"))
    begin, end = _find_span(tables)
    sums = {
        "processes": int(report.metadata["job"]["nprocs"]),
        "requests": _sum(tables, "POSIX_WRITES") + _sum(tables, "POSIX_READS"),
        "bytes": written + read,
        "read_bytes": read,
        "span_ns": (end - begin) * 1e9,
    }
    print(json.dumps(sums))
    return 0


def _sum(tables: list[dict[str, Any]], counter: str) -> int:
    """Return the sum over files; unknown values are below 0."""
    return sum(int(table["counters"][counter].clip(lower=0).sum()) for table in tables)


def _find_span(tables: list[dict[str, Any]]) -> tuple[float, float]:
    """Return first start and last end of a request, in seconds from the job's start; files without any have 0."""
    starts, ends = [], []
    for table in tables:
        for kind in ("READ", "WRITE"):
            start, end = (table["fcounters"][f"POSIX_F_{kind}_{what}_TIMESTAMP"] for what in ("START", "END"))
            starts += start[end > 0].tolist()
            ends += end[end > 0].tolist()
    return min(starts, default=0.0), max(ends, default=0.0)


if __name__ == "__main__":
    sys.exit(main())
