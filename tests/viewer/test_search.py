# SPDX-License-Identifier: Apache-2.0
"""Search finds regions, operations and lines. If a found item is selected, the page's loads equal links.csv."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Site
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.traffic import loads_in_csv
from ibprof_testing.views import Open

TESTBED = str(find_sample("testbed44", IBDIAGNET))


def test_regions_operations_and_lines_are_found(open_view: Open, tmp_path: Path) -> None:
    counts = [Count(0, 1, 900, operation=0), Count(2, 1, 70, region=1, operation=1), Count(0, 2, 5, region=1)]
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    ranks = [make_rank(rank, rank) for rank in range(3)]
    run = make_profile(counts, ranks, hosts, ("main", "halo exchange"), ("BCAST", "SEND"))
    sites = tuple(Site("/src/a.c", line, "f", "app", name=f"a.c:{line}") for line in (7, 212))
    run = replace(run, sites=sites, counters=replace(run.counters, site=np.array([1, 2, 2], np.int32)))
    write_archive(run, tmp_path / "profile.otf2")
    inputs = [TESTBED, str(tmp_path / "profile.otf2")]
    opened = open_view(inputs)
    for query, found, filters in (
        ("exchange", "region halo exchange", ["--region", "halo exchange"]),
        ("MPI_Send", "operation MPI_Send", ["--operation", "SEND"]),
        ("a.c:21", "line a.c:212", ["--site", "a.c:212"]),
    ):
        opened.page.keyboard.press("/")
        opened.page.keyboard.type(query)
        assert opened.page.locator("#found li").first.inner_text() == found
        opened.page.keyboard.press("Enter")
        expected = loads_in_csv([*inputs, *filters], tmp_path / "own.csv")
        assert opened.loads() == expected != opened.expected()
        opened.page.keyboard.press("Escape")
        assert opened.loads() == opened.expected()
