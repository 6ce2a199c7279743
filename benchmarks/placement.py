# SPDX-License-Identifier: Apache-2.0
"""Compare placements and search times of `ibprof-place`, SharedMap, KaHIP, METIS and Scotch on 20 cases.

Run it from a checkout, with ibprof, its extra `partitioners` and Debian's `scotch` installed:
    python benchmarks/placement.py [--only NAME] [--time SECONDS]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np
from placement_cases import CASES, PlacementCase
from placement_libraries import LIBRARIES, Library, RankGraph

from ibprof_converter.analysis.pipeline_options import FabricOptions, no_progress
from ibprof_converter.analysis.pipeline_stages import read_subnets
from ibprof_converter.analysis.rank_placing import default_seconds
from ibprof_converter.placement.lower_bound import find_bounds
from ibprof_converter.placement.placement_problem import PlacementScore
from ibprof_converter.placement.starting_placements import packed_slots, starting_placements
from ibprof_converter.placement.swap_search import search
from ibprof_testing.samples.placements import hosts_on_all_rails, make_problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--time", type=float, metavar="SECONDS", help="time of each search (default: ibprof-place's)")
    parser.add_argument("--only", default="", metavar="NAME", help="run only cases whose names contain NAME")
    parser.add_argument("--skip", default="", metavar="NAMES", help="libraries to leave out, separated by commas")
    arguments = parser.parse_args()
    libraries = {name: run for name, run in LIBRARIES.items() if name not in arguments.skip.split(",")}
    print(
        "each cell has two or three values: ms at line rate of the most loaded link; ms of the most loaded link "
        "between switches; seconds of the search, if any"
    )
    print(
        "| case | ranks a host | ibprof-place | recorded order | "
        + " | ".join(libraries)
        + " | time / the best library's |"
    )
    print("|" + "---|" * (5 + len(libraries)))
    ratios = [compare(case, libraries, arguments.time) for case in CASES if arguments.only.lower() in case.name.lower()]
    print(f"time with ibprof-place / time with the best library: mean {np.mean(ratios):.3f}, ", end="")
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}; ", end="")
    print(f"largest {max(ratios):.3f}, {sum(ratio > 1 + 1e-9 for ratio in ratios)} cases above 1")


def compare(case: PlacementCase, libraries: Mapping[str, Library], seconds: float | None) -> float:
    """Print the row of a case. Return the ratio (`_ratio`) of ibprof-place's result to the best library's result."""
    subnets = read_subnets(FabricOptions((case.fabric,)), no_progress)
    _, hosts = hosts_on_all_rails(subnets)
    demand = case.demand()
    assert len(hosts) * case.each == demand.ranks == int(np.prod(case.tree))
    began = time.perf_counter()
    problem = make_problem(demand, subnets, hosts, case.each)
    starts = starting_placements(problem.neighbours, problem.slots, problem.paths, 1)
    allowed = seconds or default_seconds(demand.ranks)
    found = search(problem, list(starts.values()), 1, allowed, find_bounds(problem))
    took = time.perf_counter() - began
    cells = [_cell(found.score, took), _cell(problem.score(packed_slots(problem.slots, demand.ranks)))]
    graph = RankGraph(problem.neighbours)
    others = []
    for run in libraries.values():
        began = time.perf_counter()
        try:
            score = problem.score(np.ascontiguousarray(run(graph, case.tree), np.uint32))
        except Exception as error:
            cells.append(type(error).__name__)
            continue
        cells.append(_cell(score, time.perf_counter() - began))
        others.append(score)
    best = min(others, default=found.score)
    ratio, what = _ratio(found.score, best)
    late = " (clock)" if found.stopped_by_clock else ""
    print(f"| {case.name} | {case.each} | " + " | ".join(cells) + f" | {ratio:.3f} ({what}){late} |", flush=True)
    return ratio


def _cell(score: PlacementScore, seconds: float | None = None) -> str:
    times = f"{score.bottleneck_seconds * 1e3:.3f} / {score.max_seconds * 1e3:.3f}"
    return times if seconds is None else f"{times} / {seconds:.1f}"


def _ratio(found: PlacementScore, best: PlacementScore) -> tuple[float, str]:
    """Return found / best for the first value that differs between the scores, and the name of this value."""
    if found.bottleneck_seconds != best.bottleneck_seconds:
        return found.bottleneck_seconds / best.bottleneck_seconds, "all"
    if found.max_seconds != best.max_seconds and best.max_seconds:
        return found.max_seconds / best.max_seconds, "switches"
    return (found.sum_seconds / best.sum_seconds if best.sum_seconds else 1.0), "sum"


if __name__ == "__main__":
    main()
