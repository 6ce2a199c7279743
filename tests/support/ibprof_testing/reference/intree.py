# SPDX-License-Identifier: Apache-2.0
"""The in-trees of destinations.

For each destination LID, a switch's forwarding table has one next hop. The next hops of all switches form a tree with
the destination as its root. Faulty tables may add separate cycles and dead ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.spread import Reason
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import UNREACHABLE


@dataclass(frozen=True, slots=True)
class InTrees:
    """The next hops of all switches to some destinations.

    A place is an int: 0 .. switches - 1 for a switch, switches + reason for the outcome of a packet.

    Attributes:
        end: int32 [place, destination], the link direction on which the switch sends; `NONE` if it does not send.
        next: int32 [place, destination], the next place; the next place after an outcome is the same outcome.
        depth: int32 [place, destination], number of steps to the outcome; undefined for `Reason.LOOP`.
        reason: uint8 [place, destination], the outcome of a packet at this place.
    """

    end: npt.NDArray[np.int32]
    next: npt.NDArray[np.int32]
    depth: npt.NDArray[np.int32]
    reason: npt.NDArray[np.uint8]

    @classmethod
    def grow(cls, network: IndexedNetwork, destination_lid: npt.NDArray[np.integer]) -> InTrees:
        """Compute the next hops from all switches to some LIDs of the fabric."""
        end, to = _step(network, destination_lid)
        switches = len(network.switch_node)
        outcomes = np.arange(switches, switches + len(Reason), dtype=np.int32)
        shape = (len(outcomes), len(destination_lid))
        end = np.concatenate([end, np.full(shape, NONE, np.int32)])
        to = np.concatenate([to, np.broadcast_to(outcomes[:, np.newaxis], shape)])
        depth = np.zeros(to.shape, np.int32)
        depth[:switches] = 1
        # Pointer doubling: after round k, `jump` is 2**k steps ahead. A path with more steps than switches is a loop.
        jump = to
        for _ in range(switches.bit_length()):
            if (jump >= switches).all():
                break
            depth += np.take_along_axis(depth, jump, axis=0)
            jump = np.take_along_axis(jump, jump, axis=0)
        reason = np.where(jump >= switches, jump - switches, Reason.LOOP).astype(np.uint8)
        return cls(end, to, depth, reason)


def _step(
    network: IndexedNetwork, destination_lid: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return, for each switch and destination, the link direction to the destination, and the place at its end."""
    switches = len(network.switch_node)
    table = network.tables.port
    egress = np.full((switches, len(destination_lid)), UNREACHABLE, np.uint8)
    inside = np.flatnonzero(destination_lid < table.shape[1])
    has_table = np.flatnonzero(network.row != NONE)
    egress[np.ix_(has_table, inside)] = table[np.ix_(network.row[has_table], destination_lid[inside])]
    end = network.end_at[network.switch_node[:, np.newaxis], egress]
    destination = network.fabric.lid_port[destination_lid]
    to = np.where(end == NONE, switches + Reason.UNKNOWN_PORT, arrive(network, end, destination))
    to[egress == 0] = switches + Reason.WRONG_END
    to[egress == UNREACHABLE] = switches + Reason.UNREACHABLE
    to[network.row == NONE] = switches + Reason.MISSING_TABLE
    own = network.switch_of[network.fabric.lid_node[destination_lid]]
    is_switch = np.flatnonzero(own != NONE)
    to[own[is_switch], is_switch] = switches + Reason.DELIVERED
    end[own[is_switch], is_switch] = NONE
    return end, to


def arrive(
    network: IndexedNetwork, end: npt.NDArray[np.int32], destination: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return the place (see `InTrees`) at the receiving end of each link direction.

    Args:
        end: int32, link directions. For `NONE`, the returned place is undefined.
        destination: int32, index of the packet's destination port.
    """
    switches = len(network.switch_node)
    outcome = np.where(network.arrives_at[end] == destination, Reason.DELIVERED, Reason.WRONG_END)
    switch = network.switch_of[network.next_node[end]]
    return np.where(switch == NONE, switches + outcome, switch).astype(np.int32)
