# SPDX-License-Identifier: Apache-2.0
"""The throughput of patterns in lines: shares in percent, and pairs that do not arrive."""

from __future__ import annotations

from ibprof_converter.hotspots.pattern_throughput import PatternThroughput, describe_patterns


def test_a_pattern_is_a_line_of_shares_in_percent() -> None:
    bisect = PatternThroughput(1, "bisect", 20, 0.5, 0.025, 0.25, 1.0, 0.75, 0.0, 0.75, 0.75, unrouted=0.125)
    shift = PatternThroughput(0, "shift", 3, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, unrouted=0.0)
    head, relative, first, second = describe_patterns([shift, bisect])
    assert "mean, standard deviation, worst and best sample" in head
    assert "the hosts' own links alone" in relative
    assert first == (
        "rail 0  shift            3 x  100.00% +-  0.00 (100.00 to 100.00)   100.00% +-  0.00 (100.00 to 100.00)"
    )
    assert second == (
        "rail 1  bisect          20 x   50.00% +-  2.50 ( 25.00 to 100.00)    75.00% +-  0.00 ( 75.00 to  75.00)"
        "   12.5% of pairs are not routed"
    )
