# SPDX-License-Identifier: Apache-2.0
"""Advice for the call that loads a link: the same cause needs another change in a gather than in a broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ibprof_converter.hotspots.causes.load_cause import FEW_TO_MANY, MANY_TO_FEW, LoadCause

_GATHER = "use more roots, or let ranks write their own parts: a tree of messages leaves what a root receives as it is"
_REDUCE = "let the MPI reduce along a tree, in which no rank receives from many; or reduce over fewer ranks at a time"
_SCATTER = "use more roots, or let ranks read their own parts: a tree of messages leaves what a root sends as it is"
_BROADCAST = "let the MPI broadcast along a tree or a pipeline, in which the root sends to few ranks"
_UNEVEN = "share out what {} evenly over the ranks: other algorithms leave the sums of each rank as they are"
_RECEIVERS = "use more ranks that receive (aggregators, servers), on hosts of their own"
_SENDERS = "use more ranks that send (servers, readers), on hosts of their own"

_ADVICE: Mapping[str, Mapping[str, str]] = {
    MANY_TO_FEW: {
        "gather": _GATHER,
        "reduce": _REDUCE,
        "allreduce": _REDUCE,
        "alltoall": _UNEVEN.format("is received"),
        "send": _RECEIVERS,
        "put": _RECEIVERS,
    },
    FEW_TO_MANY: {
        "scatter": _SCATTER,
        "bcast": _BROADCAST,
        "alltoall": _UNEVEN.format("is sent"),
        "send": _SENDERS,
        "get": _SENDERS,
    },
}


def advise_on_call(cause: LoadCause) -> LoadCause:
    """Return a cause with the advice for the call that loads the link most, where there is one."""
    operation = cause.loaded_by.operation if cause.loaded_by else None
    advice = _ADVICE.get(cause.cause, {}).get(_family(operation or ""))
    if advice is None:
        return cause
    return replace(cause, advice=f"{operation}: {advice}")


def _family(operation: str) -> str:
    """Return the kind of a call: `gather` of MPI_Igatherv, `send` of MPI_Isend and MPI_Rsend."""
    name = operation.removeprefix("MPI_").lower().removesuffix("_init")
    families = ("allreduce", "reduce", "gather", "scatter", "alltoall", "bcast", "send", "put", "get")
    for family in families:
        stems = {family, f"i{family}"} | ({f"{mode}{family}" for mode in ("b", "s", "r", "ib", "is", "ir")})
        if name in stems or name.removesuffix("v") in stems or name.removesuffix("w") in stems:
            return family
    return ""
