# SPDX-License-Identifier: Apache-2.0
"""`diff()` compares runs as `ibprof diff` does, with the same rails, placements and strictness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import InconsistentError, UsageError
from ibprof_converter import RoutedFabric, read_fabric, report
from ibprof_converter import diff as compare_runs
from ibprof_converter.cli import diff
from ibprof_testing.samples.damage import record_run, write_run
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

DUAL_RAIL = [str(FABRICS / "dualrail" / rail / "ibdiagnet.lst.xz") for rail in ("rail1", "rail2")]


@pytest.fixture(scope="module")
def dual_rail() -> RoutedFabric:
    return read_fabric(*DUAL_RAIL)


Runs = tuple[Path, Path]


def write_runs(folder: Path, prefix: str) -> Runs:
    """Write two runs on four hosts. A host's name is the prefix and a number from 1 to 4."""
    paths = folder / "a.otf2", folder / "b.otf2"
    ranks, hosts = [make_rank(rank, rank) for rank in range(4)], [make_host(f"{prefix}{rank + 1}") for rank in range(4)]
    for path, sent in zip(paths, (5000, 7000), strict=True):
        write_archive(make_profile([Count(0, 1, sent), Count(2, 3, 100)], ranks, hosts), path)
    return paths


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Return runs on hosts that are on both rails."""
    return write_runs(tmp_path, "t2a00000")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Runs:
    """Return runs on hosts that are not in the fabric."""
    return write_runs(tmp_path, "unknown")


def without_provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "reproduce"}


@pytest.mark.parametrize(
    ("rails", "placement"), [("split", []), ("first", ["packed"]), ("second", ["packed", "spread"])]
)
def test_rails_and_placements_are_those_of_the_command(
    rails: str,
    placement: list[str],
    runs: Runs,
    dual_rail: RoutedFabric,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [f"--placement={rule}" for rule in placement]
    line = [*map(str, runs), "--fabric", *DUAL_RAIL, "--rails", rails, *options, "--json"]
    assert diff.main(line) == 0
    comparison = compare_runs(*runs, dual_rail, placement=placement, rails=rails)
    expected = without_provenance(json.loads(capsys.readouterr().out))
    assert without_provenance(json.loads(json.dumps(comparison.as_json()))) == expected


def test_the_policy_for_rails_decides_which_links_change(runs: Runs, dual_rail: RoutedFabric) -> None:
    changed = {
        rails: {
            change.name
            for part in compare_runs(*runs, dual_rail, rails=rails).parts
            if part.dimension == "link"
            for change in part.changes
        }
        for rails in ("first", "second")
    }
    assert all(name.startswith("rail 0: ") for name in changed["first"])
    assert all(name.startswith("rail 1: ") for name in changed["second"])
    assert min(map(len, changed.values())) >= 2


def test_strict_refuses_bytes_that_cannot_be_routed(elsewhere: Runs, dual_rail: RoutedFabric) -> None:
    compare_runs(*elsewhere, dual_rail)
    with pytest.raises(InconsistentError, match="bytes that cannot be routed: 5100 "):
        compare_runs(*elsewhere, dual_rail, strict=True)


def test_an_empty_placement_of_two_is_that_of_the_recording(elsewhere: Runs, dual_rail: RoutedFabric) -> None:
    comparison = compare_runs(*elsewhere, dual_rail, placement=["", "packed"])
    (unrouted,) = (each for each in comparison.totals if each.name == "bytes_unrouted")
    assert (unrouted.a, unrouted.b) == (5100, 0)


def test_two_runs_have_no_three_placements(runs: Runs, dual_rail: RoutedFabric) -> None:
    with pytest.raises(UsageError, match="expected one for both runs, or one for each"):
        compare_runs(*runs, dual_rail, placement=["packed"] * 3)


def test_what_one_run_lacks_is_said_of_it(tmp_path: Path, dual_rail: RoutedFabric) -> None:
    """Run B lacks the records of one rank, and another rank is on an unknown host. The note names B."""
    ranks, hosts = [make_rank(rank, rank) for rank in range(3)], [make_host(f"t2a00000{each}") for each in (1, 2, 3)]
    counts = [Count(0, 1, 5000), Count(2, 0, 100)]
    whole = make_profile(counts, ranks, hosts)
    part = make_profile(counts[:1], ranks[:2], [hosts[0], make_host("unknown")], world_size=3)
    write_archive(part, tmp_path / "part.otf2")
    (lacks,) = compare_runs(whole, part).notes
    assert lacks.startswith("B: not seen: 1 of 3 ranks were not recorded: 2; ")
    assert compare_runs(whole, tmp_path / "part.otf2").notes == (lacks,)
    on_fabric = compare_runs(whole, part, dual_rail)
    assert lacks in on_fabric.notes
    assert "B: 5000 of 5000 bytes are on no link: host is not in the fabric" in on_fabric.notes
    assert "A and B: modelled: rails that carry the bytes: modelled (split)" in on_fabric.notes
    (tmp_path / "whole.json").write_text(json.dumps(report(whole, dual_rail).as_json()))
    (tmp_path / "part.json").write_text(json.dumps(report(part, dual_rail).as_json()))
    of_reports = compare_runs(tmp_path / "whole.json", tmp_path / "part.json").notes
    assert set(on_fabric.notes) <= set(of_reports)
    assert [note for note in of_reports if note.startswith("A: the report names only its ")]
    assert not [note for note in on_fabric.notes if "names only" in note]


def test_ranks_that_one_run_lacks_are_named_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = record_run(("host1", "host2", "host3", "host4"))
    write_run(run, tmp_path / "a.ibprof")
    write_run({host: each for host, each in run.items() if host != "host3"}, tmp_path / "b.ibprof")
    assert diff.main([str(tmp_path / "a.ibprof"), str(tmp_path / "b.ibprof")]) == 0
    first = capsys.readouterr().out.split("What changed")[0]
    assert "B: Left out: 2 of 8 ranks (25.0%): not recorded." in first
    assert "A: Left out" not in first
