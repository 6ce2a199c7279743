# SPDX-License-Identifier: Apache-2.0
"""Hosts that send more slowly than the other hosts of their job: by link, message time, rate or end time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_bytes, format_seconds, printable
from ibprof_lab.simulation.measure.run_observer import Watch

_LEAST_PEERS = 4
"""Smallest number of clients with a usual value."""

_LEAST_STEPS = 4
_FACTOR = 1.5
"""Smallest ratio of a slow value to the median."""

_SPREAD = 3.0
"""Slow values are also beyond this number of interquartile ranges from the quartile (Tukey's far outliers)."""

_MOSTLY = 0.5

_FACTS: Mapping[str, tuple[str, str, Callable[[float], str]]] = {
    "gbps": ("its link runs at {}", "its peers' at {}", "{:.3g} Gb/s".format),
    "mean_us": ("its messages take {}", "its peers' {}", lambda us: format_seconds(us / 1e6)),
    "bytes": ("it sends {}", "its peers {}", format_bytes),
    "last_us": ("it has sent all after {}", "its peers after {}", lambda us: format_seconds(us / 1e6)),
}
"""Texts for each quantity of a slow sender: host's value, peers' value, and number format."""


@dataclass(frozen=True, slots=True)
class SlowSender:
    """A host that sends more slowly than its peers.

    Attributes:
        job, guid, name: job, GUID and name of the host's client.
        figures: name and unit of each slow quantity -> the host's value, and the peers' median.
    """

    job: str
    guid: str
    name: str
    figures: Mapping[str, tuple[float, float]]

    def to_json(self) -> dict[str, object]:
        """Return the JSON form: the host's values, and the peers' values under `usual_`."""
        values = {
            f"{prefix}{key}": int(value) if key == "bytes" else round(value, 4)
            for key, pair in self.figures.items()
            for prefix, value in zip(("", "usual_"), pair, strict=True)
        }
        return {"job": self.job, "guid": self.guid, "name": self.name, **values}

    def describe(self) -> str:
        """Return a sentence on the host."""
        stated = [
            ", ".join(part.format(form(value)) for part, value in zip(parts, self.figures[key], strict=True))
            for key, (*parts, form) in _FACTS.items()
            if key in self.figures
        ]
        return f"slow sender of {self.job}: {printable(self.name)}: {'; '.join(stated)}"


def find_slow_senders(watch: Watch, unequal: Collection[str]) -> list[SlowSender]:
    """Return the slow senders of each job, those with the longest messages first.

    Args:
        watch: observer of the finished run.
        unequal: names of jobs whose ranks may send different amounts.
    """
    simulation = watch.simulation
    network, fabric = simulation.network, simulation.network.subnet.fabric
    messages, mean_ns = watch.by_client()
    progress = simulation.look_at_clients()
    host_gbps = _find_port_gbps(watch)[network.host_port]
    to_slow = _share_to(watch, _find_outliers(host_gbps, is_rate=True))
    found: list[tuple[float, SlowSender]] = []
    for number, job in enumerate(simulation.jobs):
        clients = np.flatnonzero(simulation.job_of_client == number)
        if len(clients) < _LEAST_PEERS:
            continue
        seen = messages[clients] >= _LEAST_STEPS
        values = {
            "gbps": host_gbps[simulation.host_of_client[clients]],
            "mean_us": np.where(seen, mean_ns[clients], math.nan) / 1e3,
        }
        if job.name not in unequal:
            steps = progress.steps[clients]
            if job.limit:
                last = [network.to_ns(int(each)) / 1e3 for each in progress.last[clients]]
                values["last_us"] = np.where(steps >= job.limit, last, math.nan)
            elif np.median(steps) >= _LEAST_STEPS:
                values["bytes"] = progress.bytes[clients].astype(float)
        slow = {key: _find_outliers(each, is_rate=key in {"gbps", "bytes"}) for key, each in values.items()}
        # A sender to a slow host is not slow itself.
        is_slow = np.any([*slow.values()], axis=0) & (slow["gbps"] | (to_slow[clients] < _MOSTLY))
        for at in np.flatnonzero(is_slow).tolist():
            node = int(fabric.port_node[network.host_port[simulation.host_of_client[clients[at]]]])
            figures = {
                key: (float(each[at]), float(np.nanmedian(each))) for key, each in values.items() if slow[key][at]
            }
            sender = SlowSender(job.name, f"0x{int(fabric.node_guid[node]):016x}", fabric.node_name[node], figures)
            found.append((-float(np.nan_to_num(values["mean_us"][at])), sender))
    return [sender for _, sender in sorted(found, key=lambda each: each[0])]


def describe_slow_senders(found: list[SlowSender], most: int = 3) -> Iterator[str]:
    """Yield a sentence on each of the slowest senders, and a sentence on the number of others."""
    yield from (each.describe() for each in found[:most])
    if len(found) > most:
        yield f"{len(found) - most} more slow senders: slow_senders in summary.json has all"


def _find_port_gbps(watch: Watch) -> npt.NDArray[np.float64]:
    """Return the rate of the link at each port with a LID, float64 [port]; nan where unknown."""
    fabric = watch.simulation.network.subnet.fabric
    of_end = {
        (node, port): gbps
        for nodes, ports, gbps in zip(
            fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), strict=True
        )
        for node, port in zip(nodes, ports, strict=True)
    }
    ends = zip(fabric.port_node.tolist(), fabric.port_number.tolist(), strict=True)
    return np.array([of_end.get(end, math.nan) for end in ends])


def _share_to(watch: Watch, hosts: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the share of each client's messages that it exchanges with the given hosts, float64 [client]."""
    flows, clients = watch.flows(), watch.simulation.clients
    some = np.bincount(flows.client, flows.messages * hosts[flows.host], clients)
    return some / np.maximum(np.bincount(flows.client, flows.messages, clients), 1)


def _find_outliers(values: npt.NDArray[np.float64], *, is_rate: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of values far on the slow side of the others, bool [client]; nan is not slow."""
    cost = 1 / np.maximum(values, 1e-9) if is_rate else values
    known = cost[~np.isnan(cost)]
    if len(known) < _LEAST_PEERS:
        return np.zeros(len(values), np.bool_)
    low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
    with np.errstate(invalid="ignore"):
        slow: npt.NDArray[np.bool_] = (cost > _FACTOR * middle) & (cost > high + _SPREAD * (high - low))
    return slow
