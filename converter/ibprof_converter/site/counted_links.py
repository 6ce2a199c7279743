# SPDX-License-Identifier: Apache-2.0
"""Port counters of the fabric of a day, as bytes by the port that sent them."""

from __future__ import annotations

from datetime import date
from os import fspath
from pathlib import Path

from ibprof.errors import InputError, UsageError
from ibprof_converter.site.fabric_days import FabricCalendar
from ibprof_converter.traffic.port_counters import subtract_counters
from ibprof_converter.traffic.traffic_data import PortCounters
from ibprof_converter.traffic.traffic_reader import read_traffic


def subtract_counted(store: Path, before: Path, after: Path, day: date) -> dict[tuple[str, int], int]:
    """Return the bytes that ports sent between two files of counters, by the GUID of the node and the port number.

    Raises:
        InputError: a file does not hold port counters.
            UsageError: the store has no fabric for the day.
    """
    fabric = FabricCalendar(store).find(day)
    if fabric is None:
        raise UsageError(f"the store has no fabric of {day}; ibprof-site fabric adds one")
    read = []
    for path in (before, after):
        counters = read_traffic(fspath(path), None, fabric.routed.fabrics)
        if not isinstance(counters, PortCounters):
            raise InputError(path, None, "port counters", counters.origin)
        read.append(counters)
    sent = subtract_counters(read[1], read[0])
    ports = zip(sent.node_guid.tolist(), sent.port.tolist(), sent.bytes.tolist(), strict=True)
    return {(f"0x{guid:016x}", port): amount for guid, port, amount in ports}
