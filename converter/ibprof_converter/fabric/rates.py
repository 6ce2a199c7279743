# SPDX-License-Identifier: Apache-2.0
"""Compute data rates of InfiniBand links."""

from __future__ import annotations

from math import nan

_8B10B = 8 / 10
_64B66B = 64 / 66
_RS_FEC = 514 / 544 * 256 / 257  # RS(544,514) over 256b/257b blocks

_LANE_GBPS = {
    "2.5": 2.5 * _8B10B,  # SDR
    "5": 5.0 * _8B10B,  # DDR
    "10": 10.0 * _8B10B,  # QDR; OpenSM and ibdiagnet 1 also print 10 for FDR10 (10.3125 x 64/66 = 10)
    "FDR10": 10.3125 * _64B66B,
    "EDR20": 20.625 * _64B66B,  # only adapters and switches of Mellanox have FDR10 and EDR20
    "14": 14.0625 * _64B66B,  # FDR
    "25": 25.78125 * _64B66B,  # EDR
    "50": 53.125 * _RS_FEC,  # HDR
    "100": 106.25 * _RS_FEC,  # NDR
    "200": 212.5 * _RS_FEC,  # XDR
}
"""Printed speed -> data rate of one lane (signalling rate x coding), in Gb/s.

Source: InfiniBand Architecture Specification, volume 1, PortInfo (LinkSpeedActive, LinkSpeedExtActive); volume 2, the
chapters on the physical layer for signalling rates and coding.
"""


_BY_NAME = {
    "SDR": "2.5",
    "DDR": "5",
    "QDR": "10",
    "FDR10": "10",
    "FDR": "14",
    "EDR": "25",
    "HDR": "50",
    "NDR": "100",
    "XDR": "200",
}

_BY_CODE = (
    (24, {1: "200"}),
    (8, {1: "14", 2: "25", 4: "50", 8: "100", 16: "200"}),
    (16, {1: "FDR10", 2: "EDR20"}),
    (0, {1: "2.5", 2: "5", 4: "10"}),
)
"""The bytes of ibdiagnet 2's LinkSpeedActv, with fast speeds first: index of the byte's lowest bit, and code -> speed.

From the lowest byte: LinkSpeedActive, LinkSpeedExtActive (FDR to XDR), speeds of Mellanox, and the second extension
(XDR). Several bytes can be nonzero: 2052 is NDR, although its lowest byte is QDR.
"""

_LANES_BY_CODE = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
"""Code of LinkWidthActive -> width.

Source: InfiniBand Architecture Specification, volume 1, PortInfo.
"""


def speed_of_name(name: str) -> str:
    """Return the lane speed of a name such as `QDR`, for `data_rate_gbps`. An unknown name is returned unchanged."""
    return _BY_NAME.get(name, name)


def speed_of_code(code: int) -> str:
    """Return the lane speed of ibdiagnet 2's LinkSpeedActv, for `data_rate_gbps`; empty if unknown."""
    for shift, speeds in _BY_CODE:
        if one_byte := code >> shift & 0xFF:
            return speeds.get(1 << one_byte.bit_length() - 1, "")
    return ""


def lanes_of_code(code: int) -> int:
    """Return the width of a LinkWidthActive code; 0 if unknown."""
    return _LANES_BY_CODE.get(code, 0)


def data_rate_gbps(lanes: int, speed: str) -> float:
    """Return the data rate of one direction of a link in Gb/s.

    Args:
        lanes: 1, 2, 4, 8 or 12; 0 for an unknown width.
        speed: printed speed of one lane, `2.5` to `200`.

    Returns:
        Gb/s, nan for an unknown speed or width.
    """
    return lanes * _LANE_GBPS.get(speed, nan) if lanes else nan
