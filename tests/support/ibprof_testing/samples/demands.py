# SPDX-License-Identifier: Apache-2.0
"""Add demands (the bytes in the arguments of calls) to hand-made profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ibprof.profile.profile_data import Demands, Profile
from ibprof.profile.unaccounted import PARTNER_GROUP

SIZE_SHIFT = 40


def group_of(ranks: int) -> int:
    """Return the value of `Demands.partner` for collectives without a root, on a communicator of `ranks` ranks."""
    return PARTNER_GROUP | ranks << SIZE_SHIFT | 0x1234


def with_demands(run: Profile, asked: Sequence[tuple[int, int, int]], operation: int = 0, region: int = 0) -> Profile:
    """Return a profile with a call for each (rank, partner, bytes), all of the same operation and region."""
    demands = Demands(
        rank=np.array([rank for rank, _, _ in asked], np.int32),
        region=np.full(len(asked), region, np.int32),
        operation=np.full(len(asked), operation, np.int32),
        partner=np.array([partner for _, partner, _ in asked], np.uint64),
        bytes=np.array([amount for _, _, amount in asked], np.uint64),
        calls=np.ones(len(asked), np.uint64),
    )
    ranks = tuple(replace(rank, has_demands=True) for rank in run.ranks)
    return replace(run, demands=demands, ranks=ranks)
