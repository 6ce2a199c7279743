# SPDX-License-Identifier: Apache-2.0
"""The events of one rank, gathered as arrays and written by a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import _otf2
import numpy as np
import numpy.typing as npt
import otf2

from ibprof.archive.definitions import Definitions
from ibprof.archive.events import ENTER, EVENT, LEAVE, METRIC, NUMBER, TEXT, Events, write_events


class Location:
    """Gather the events of one rank, and write them at the end.

    Attributes:
        begin_ns, time_ns: of its first event, and of the last one so far; times of an archive never decrease.
        events: number of written events.
    """

    def __init__(self, archive: Any, number: int, begin_ns: int, definitions: Definitions) -> None:
        self._definitions = definitions
        self._archive = archive
        self._local = _otf2.Archive_GetDefWriter(archive, number)
        self._writer = _otf2.Archive_GetEvtWriter(archive, number)
        self._records: list[npt.NDArray[np.void]] = []
        self._values: list[npt.NDArray[np.uint64]] = []
        self.begin_ns = self.time_ns = begin_ns
        self.events = 0

    def advance(self, time_ns: int) -> None:
        """Advance to a time, unless it has passed: a clock that was set back must not set the archive back."""
        self.time_ns = max(self.time_ns, time_ns)

    def enter_region(self, region: int) -> None:
        """Add the event that a region is entered, by its number in the profile."""
        self._add(ENTER, region)

    def leave_region(self, region: int) -> None:
        """Add the event that it is left."""
        self._add(LEAVE, region)

    def enter_operation(self, operation: int) -> None:
        """Add the event that an operation is entered, by its number in the profile."""
        self.enter_region(self._definitions.operation(operation))

    def leave_operation(self, operation: int) -> None:
        """Add the event that it is left."""
        self.leave_region(self._definitions.operation(operation))

    def text_parameter(self, name: str, value: str) -> None:
        """Add a parameter with a text value."""
        parameter = self._definitions.parameter(name, otf2.ParameterType.STRING)
        self._add(TEXT, parameter, [self._definitions.text(value)])

    def number_parameter(self, name: str, value: int) -> None:
        """Add a parameter with a number as its value."""
        self._add(NUMBER, self._definitions.parameter(name, otf2.ParameterType.UINT64), [value])

    def metric(self, members: Sequence[str], values: Sequence[int]) -> None:
        """Add a metric: the names of its values, and the values."""
        self._add(METRIC, self._definitions.metric(members), values)

    def numbered_metrics(
        self, name: str, parameters: npt.NDArray[Any], members: Sequence[str], numbers: npt.NDArray[np.uint64]
    ) -> None:
        """Add metrics, each after a parameter.

        Args:
            name: of the parameters.
            parameters: their values [metric].
            members: names of a metric's values.
            numbers: [metric, member].
        """
        records = np.empty((len(parameters), 2), EVENT)
        records["time_ns"] = self.time_ns
        records["kind"] = NUMBER, METRIC
        records["values"] = 1, len(members)
        parameter = self._definitions.parameter(name, otf2.ParameterType.UINT64)
        records["reference"] = parameter, self._definitions.metric(members)
        self._records.append(records.ravel())
        self._values.append(np.concatenate([parameters[:, None].astype(np.uint64), numbers], axis=1).ravel())

    def _add(self, kind: int, reference: int, values: Sequence[int] = ()) -> None:
        self._records.append(np.array([(self.time_ns, reference, kind, len(values))], EVENT))
        self._values.append(np.array(values, np.uint64))

    def close(self) -> None:
        """Write all events. The archive keeps no file of this location open."""
        none = np.empty(0, EVENT), np.empty(0, np.uint64)
        events = Events(np.concatenate([none[0], *self._records]), np.concatenate([none[1], *self._values]))
        self._records.clear()
        self._values.clear()
        write_events(self._writer, events)
        self.events = len(events.records)
        _otf2.Archive_CloseDefWriter(self._archive, self._local)
        _otf2.Archive_CloseEvtWriter(self._archive, self._writer)
