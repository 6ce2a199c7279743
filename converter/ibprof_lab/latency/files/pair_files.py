# SPDX-License-Identifier: Apache-2.0
"""Files of pairs of processes: those to measure again, those that changed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically

HEADER = ("sender", "receiver")


def read_pairs(path: Path, labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """Read `sender,receiver` a line: numbers of processes, or their labels, or the names of hosts.

    A host's name stands for all of its processes. Further columns are ignored; a header is skipped.

    Args:
        path: the file.
        labels: of the processes, `Delays.labels`.

    Returns:
        Pairs of processes, int64 [p, 2].

    Raises:
        InputError: with the line.
    """
    known: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        for name in {label, label.rpartition("#")[0] or label}:
            known.setdefault(name, []).append(place)
    for place in range(len(labels)):
        known.setdefault(str(place), [place])
    pairs: list[tuple[int, int]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, fields in enumerate(csv.reader(file), 1):
                names = [field.strip() for field in fields[:2]]
                if not any(names) or names[0].startswith("#") or (line == 1 and tuple(names) == HEADER):
                    continue
                if len(names) < 2:
                    raise InputError(path, line, "sender,receiver", quote_found(",".join(fields)))
                for name in names:
                    if name not in known:
                        raise InputError(path, line, f"one of {len(labels)} processes or its host", quote_found(name))
                pairs += [(one, other) for one in known[names[0]] for other in known[names[1]] if one != other]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, None, "a readable CSV file", getattr(error, "strerror", None) or str(error)) from error
    return np.array(pairs, np.int64).reshape(-1, 2)


def write_named_pairs(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Write pairs in both directions as `sender,receiver`; a host's name stands for all of its processes.

    Raises:
        OSError: the file cannot be written.
    """
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(pair for a, b in pairs for pair in ((a, b), (b, a)))
    write_atomically(path, content.getvalue().encode("utf-8", "backslashreplace"))


def write_pairs(
    path: Path, labels: Sequence[str], pairs: npt.NDArray[np.int64], ratios: npt.NDArray[np.float64]
) -> None:
    """Write pairs that changed as `sender,receiver,ratio`, which `read_pairs` takes.

    Raises:
        OSError: the file cannot be written.
    """
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow((*HEADER, "ratio"))
    for (one, other), ratio in zip(pairs.tolist(), ratios.tolist(), strict=True):
        writer.writerow((labels[one], labels[other], f"{ratio:.6g}"))
    write_atomically(path, content.getvalue().encode("utf-8", "surrogateescape"))
