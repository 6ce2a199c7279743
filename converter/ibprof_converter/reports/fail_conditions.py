# SPDX-License-Identifier: Apache-2.0
"""Thresholds for comparisons: `max_link>+10%`, `bytes[BCAST]>+5%`, `max_link>2GB`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from ibprof.errors import UsageError
from ibprof.text.quantities import spell_unit

HELP = """\
thresholds (--fail-on, several; status 1 when one holds):
  METRIC>+10%            B is more than A by over 10%; METRIC<-10%: less by over 10%
  METRIC>+2GB            B is more than A by over 2 GB
  METRIC>2GB             B is over 2 GB, whatever A is
  metrics: elapsed, bytes, messages, bytes_on_host, bytes_routed, bytes_unrouted, max_link, max_switch_link, mean_link,
           links_used, max_link_seconds
  of one operation, region or call site: bytes[BCAST], messages[region:solve], bytes[site:a.c:212],
           share[BCAST]>40%, share[BCAST]>+5% (points)
  of a link: link[NAME], with NAME as ibprof diff prints it
  comparisons: >, >=, <, <=
  units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; `ns`, `us`, `ms`, `s`"""

METRICS = (
    *("elapsed", "bytes", "messages", "bytes_on_host", "bytes_routed", "bytes_unrouted"),
    *("max_link", "max_switch_link", "mean_link", "links_used", "max_link_seconds"),
)
OF_PARTS = ("bytes", "messages", "share", "link")
"""Metrics that take a name in brackets."""

_FORM = re.compile(
    r"\s*(?P<metric>[a-z_]+)\s*(?:\[(?P<name>.*)\])?\s*(?P<than>>=|<=|>|<)\s*"
    r"(?P<sign>[+-]?)\s*(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-z\u00b5\u03bc]*)\s*"
)
_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{letter}iB": 1 << 10 * power for power, letter in enumerate("KMGT", 1)
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_IN_SECONDS = ("elapsed", "max_link_seconds")
_COUNTS = ("messages", "links_used")


@dataclass(frozen=True, slots=True)
class FailCondition:
    """A threshold.

    Attributes:
        text: as it was typed.
        metric: one of `METRICS`, or "share" or "link".
        name: in brackets; None without.
        than: ">", ">=", "<" or "<=".
        limit: the number, in bytes, seconds, or parts of 1 for %.
        of_change: whether the difference of B and A is meant, not B itself.
        relative: whether it is meant as a part of A.
    """

    text: str
    metric: str
    name: str | None
    than: str
    limit: float
    of_change: bool
    relative: bool

    def holds(self, value: float) -> bool:
        """Return whether the threshold is crossed."""
        return _COMPARE[self.than](value, self.limit)


def parse_condition(text: str) -> FailCondition:
    """Read a threshold.

    Raises:
        UsageError: it is none; says what is wrong with it, and how one looks.
    """
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r}: expected METRIC>LIMIT, such as 'max_link>+10%' or 'bytes[BCAST]>+5%'")
    metric, name = found["metric"], found["name"]
    if metric not in METRICS and metric not in OF_PARTS:
        known = ", ".join([*METRICS, "share[NAME]", "link[NAME]"])
        raise UsageError(f"{text!r}: there is no metric {metric!r}; known are {known}")
    if name is not None and metric not in OF_PARTS:
        raise UsageError(f"{text!r}: {metric} is of the whole run: leave out [{name}]")
    if not name and metric not in METRICS:
        raise UsageError(f"{text!r}: {metric} needs a name: {metric}[NAME]")
    percent = found["unit"] == "%"
    if percent and not found["sign"] and metric != "share":
        raise UsageError(f"{text!r}: a part of A is a change: write {found['than']}+{found['number']}%")
    limit = float(found["number"]) * _unit(text, metric, spell_unit(found["unit"]))
    return FailCondition(
        text=text,
        metric=metric,
        name=name,
        than=found["than"],
        limit=-limit if found["sign"] == "-" else limit,
        of_change=bool(found["sign"]),
        relative=percent and metric != "share",
    )


def _unit(text: str, metric: str, unit: str) -> float:
    if unit == "%":
        return 0.01
    if metric == "share":
        raise UsageError(f"{text!r}: a share is in %")
    if metric in _COUNTS:
        units: dict[str, float] = {"": 1}
    elif metric in _IN_SECONDS:
        units = {"": 1.0, **_SECONDS}
    else:
        units = {"": 1, **_BYTES}
    if unit not in units:
        known = ", ".join(each for each in units if each) or "no unit"
        raise UsageError(f"{text!r}: {metric} is in {known}, not {unit}")
    return units[unit]
