# SPDX-License-Identifier: Apache-2.0
"""Peaks and steps equal numpy's results and the planted features. Clusters, unusual processes and changes are found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ibprof_lab.cli.latency import main
from ibprof_lab.latency.features.delay_features import correlate_with_units, detrend, filter_median, find_features
from ibprof_lab.latency.features.outliers import compare_delays, find_outlying_processes
from ibprof_lab.latency.features.pair_clusters import cluster_pairs, find_elbow, write_compressed
from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_testing.samples.delays import HOSTS_PER_LEAF, STEP_OF_ALL, STEP_OF_FAR, make_delays


@given(arrays(np.float64, (3, 12), elements=st.floats(0, 1000)))
def test_correlation_is_numpys(profiles: np.ndarray) -> None:
    found = correlate_with_units(profiles)
    for profile, row in zip(profiles, found, strict=True):
        if np.ptp(profile) < 1e-3:
            continue
        for k in range(12):
            assert row[k] == pytest.approx(np.corrcoef(profile, np.eye(12)[k])[0, 1], abs=1e-9)


def test_correlation_of_what_is_all_alike_is_none() -> None:
    assert correlate_with_units(np.full((1, 5), 0.1)).tolist() == [[0] * 5]


def test_steps_are_peaks_of_the_differences() -> None:
    """The coefficient of steps is the coefficient of peaks of the differences m_(i+1) - m_i (formula (3))."""
    delays = make_delays(hosts=3, lengths=40, noise=0.01)
    features = find_features(delays)
    smooth = detrend(filter_median(features.profiles.astype(np.float64)), delays.lengths)
    for row, profile in zip(features.step_correlations, smooth, strict=True):
        for k in range(39):
            assert row[k] == pytest.approx(np.corrcoef(np.diff(profile), np.eye(39)[k])[0, 1], abs=1e-5)


def test_median_filter_is_not_padded_with_zeros() -> None:
    assert filter_median(np.array([[5.0, 6, 7, 99, 9, 10]])).tolist() == [[5, 6, 7, 9, 10, 10]]
    line = np.arange(3.0, 12)[None]
    assert np.array_equal(filter_median(line), line)
    # A peak at the first or last length is removed too, by Tukey's rule.
    assert filter_median(np.array([[50.0, 6, 7, 8, 9]]))[0, 0] == 7


def test_a_line_has_no_features_left() -> None:
    lengths = np.array([0, 1, 8, 64, 512])
    assert detrend(3e-6 + 2e-9 * lengths[None].astype(float), lengths) == pytest.approx(np.zeros((1, 5)), abs=1e-12)


@pytest.mark.parametrize("lengths", [np.arange(33) * 64, np.unique((2 ** np.arange(0, 20, 0.5)).astype(np.int64))])
@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_noise_alone_has_hardly_a_feature(lengths: np.ndarray, noise: float) -> None:
    """Errors are proportional to delays, but features must not be found mainly at the longest messages."""
    draw = np.random.default_rng(4)
    cube = (5e-6 + 1e-10 * lengths[:, None, None]) * np.exp(noise * draw.standard_normal((len(lengths), 20, 20)))
    delays = Delays(tuple(f"n{host}" for host in range(20)), lengths, cube.astype(np.float32))
    features = find_features(delays)
    for found in (features.peaks, features.steps):
        assert np.count_nonzero(found.any(axis=1)) <= 0.02 * len(features.pairs)


def test_planted_steps_and_peaks_are_found_and_none_else() -> None:
    delays = make_delays(noise=0.003)
    cube = delays.median.copy()
    planted = [(12, 0, 9), (50, 4, 1), (88, 31, 30)]
    for place in planted:
        cube[place] += 3e-6
    features = find_features(replace(delays, median=cube, lower_quartile=0.99 * cube, upper_quartile=1.01 * cube))
    peaks = features.peaks
    found = [(int(k), *features.pairs[pair].tolist()) for pair, k in zip(*np.nonzero(peaks), strict=True)]
    assert sorted(found) == sorted(planted)
    assert peaks[np.nonzero(peaks)].tolist() == [1, 1, 1]
    leaf = features.pairs // HOSTS_PER_LEAF
    near = leaf[:, 0] == leaf[:, 1]
    steps = features.steps
    behind = (delays.lengths[1:] == STEP_OF_ALL, delays.lengths[1:] == STEP_OF_FAR)
    assert (steps[:, behind[0]] == 1).all()
    assert (steps[~near][:, behind[1]] == 1).all()
    assert (steps[near][:, behind[1]] == 0).all()
    others = ~(behind[0] | behind[1])
    assert np.count_nonzero(steps[:, others]) <= 0.01 * len(steps)


def test_a_cube_of_noise_has_hardly_any_feature() -> None:
    rng = np.random.default_rng(5)
    cube = (1e-6 * rng.normal(10, 0.1, (64, 20, 20))).astype(np.float32)
    features = find_features(Delays(tuple(map(str, range(20))), np.arange(64), cube))
    for found in (features.peaks, features.steps):
        assert np.count_nonzero(found) <= 0.1 * len(features.pairs)


def test_errors_with_long_tails_make_no_peaks_where_samples_are_known() -> None:
    """One pair has a peak. Each pair and length has eleven samples, with errors by Student's t (2 degrees)."""
    draw = np.random.default_rng(6)
    samples = 5e-6 * (1 + 0.02 * np.abs(draw.standard_t(2, (11, 64, 12, 12)))).astype(np.float32)
    samples[:, 30, 3, 4] += 2e-6
    lower, median, upper = np.quantile(samples, (0.25, 0.5, 0.75), axis=0).astype(np.float32)
    hosts = tuple(f"n{host}" for host in range(12))
    known = find_features(Delays(hosts, np.arange(64) * 64, median, lower_quartile=lower, upper_quartile=upper))
    peaks = [(int(k), *known.pairs[pair].tolist()) for pair, k in zip(*np.nonzero(known.peaks), strict=True)]
    assert (30, 3, 4) in peaks
    unknown = find_features(Delays(hosts, np.arange(64) * 64, median))
    assert len(peaks) <= 0.05 * len(known.pairs)
    assert np.count_nonzero(unknown.peaks) > 3 * len(peaks)


def test_pairs_that_lack_a_value_are_left_out() -> None:
    delays = make_delays(hosts=4, lengths=10)
    delays.median[7, 2, 3] = np.nan
    features = find_features(delays)
    assert len(features.pairs) == 11
    assert [2, 3] not in features.pairs.tolist()


def test_the_elbow() -> None:
    assert find_elbow([100, 10, 8, 7, 6.5, 6]) == 2
    assert find_elbow([100, 60, 5, 4, 3.5, 3]) == 3
    assert find_elbow([0.0]) == 1
    assert find_elbow([100, 10]) == 2
    assert find_elbow([100, 90]) == 1
    # If delays form no clusters, each further cluster reduces the error by nearly the same amount.
    assert find_elbow([100, 95, 91, 88, 85, 82]) == 1


@pytest.mark.parametrize("by", ["delays", "correlations"])
def test_two_kinds_of_pairs_are_two_clusters(by: str) -> None:
    delays = make_delays()
    features = find_features(delays)
    clusters = cluster_pairs(features, by=by)
    leaf = features.pairs // HOSTS_PER_LEAF
    assert len(clusters.centroids) == 2
    assert np.array_equal(clusters.labels == 0, leaf[:, 0] == leaf[:, 1])
    assert all(one >= other for one, other in zip(clusters.sse, clusters.sse[1:], strict=False))


def test_the_small_form_is_at_least_48_times_smaller_and_says_its_error(tmp_path: Path) -> None:
    delays = make_delays(peaks=200)
    features = find_features(delays)
    clusters = cluster_pairs(features)
    size = write_compressed(tmp_path / "clusters.npz", delays, features, clusters)
    assert size.bytes == (tmp_path / "clusters.npz").stat().st_size
    assert size.ratio == delays.median.nbytes / size.bytes > 48
    back = read_delays(tmp_path / "clusters.npz")
    assert back.hosts == delays.hosts
    assert back.lengths.tolist() == delays.lengths.tolist()
    kept, given_ = back.median[delays.measured], delays.median[delays.measured]
    error = np.abs(kept - given_) / given_
    assert size.median_error == pytest.approx(np.median(error), rel=1e-3)
    assert size.p95_error == pytest.approx(np.percentile(error, 95), rel=1e-3)
    assert size.max_error == pytest.approx(error.max(), rel=1e-3)
    assert size.median_error < 0.01


def test_odd_processes_are_named_with_their_role() -> None:
    delays = make_delays(lengths=3, noise=0.02)
    assert find_outlying_processes(delays) == []
    delays.median[:, 5, :] *= 1.5
    delays.median[:, :, 5] *= 1.5
    delays.median[:, 9, :] *= 2
    delays.median[:, :, 20] *= 0.5
    delays.median[:, 30, :] = delays.median[:, :, 30] = np.nan
    odd = {each.label: each for each in find_outlying_processes(delays)}
    assert {label: each.role for label, each in odd.items()} == {
        "n05": "both", "n09": "sender", "n20": "receiver", "n30": "both",
    }  # fmt: skip
    assert odd["n05"].ratio == pytest.approx(1.5, rel=0.05)
    assert odd["n09"].ratio == pytest.approx(2, rel=0.05)
    assert odd["n20"].ratio == pytest.approx(0.5, rel=0.05)
    assert odd["n30"].ratio == np.inf


def test_changed_pairs_are_found_and_what_all_have_in_common_is_apart() -> None:
    before = make_delays(lengths=3, noise=0.01)
    again = make_delays(lengths=3, noise=0.01, seed=1)
    assert len(compare_delays(before, again).pairs) == 0
    after = replace(again, median=again.median * 1.2, lower_quartile=None, upper_quartile=None)
    after.median[:, 3, 20] *= 2
    after.median[:, 8, 9] = np.nan
    change = compare_delays(before, after)
    assert change.overall == pytest.approx(1.2, rel=0.01)
    assert change.pairs.tolist() == [[3, 20]]
    assert change.ratios == pytest.approx([2.4], rel=0.05)
    assert change.vanished.tolist() == [[8, 9]]


def test_measurements_are_matched_by_name_and_length() -> None:
    before = make_delays(hosts=6, lengths=4, noise=0.001)
    order = [5, 3, 1, 0, 2]
    after = before.select(processes=order, lengths=[1, 3])
    change = compare_delays(before, after)
    assert change.lengths.tolist() == [100, 300]
    assert change.only_before == ("n04",)
    assert len(change.pairs) == len(change.vanished) == len(change.appeared) == 0


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_few_hosts_are_no_matter(hosts: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_delays(tmp_path / "delays.nc", make_delays(hosts=hosts, lengths=6))
    for command in (["show"], ["features", "-o", str(tmp_path / "features")]):
        assert main([*command, str(tmp_path / "delays.nc"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["processes"] == hosts
        assert main([*command, str(tmp_path / "delays.nc")]) == 0
        capsys.readouterr()
    assert main(["diff", str(tmp_path / "delays.nc"), str(tmp_path / "delays.nc")]) == 0


def strange_cubes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    some = rng.random((5, 6, 6)) * 1e-5
    lost = some.copy()
    lost[:, 2] = lost[:, :, 2] = np.nan
    return {
        "zero": np.zeros_like(some),
        "nothing": np.full_like(some, np.nan),
        "a host missing": lost,
        "half missing": np.where(rng.random(some.shape) < 0.5, np.nan, some),
        "some zero": np.where(rng.random(some.shape) < 0.2, 0, some),
        "negative": -some,
        "alike": np.full_like(some, 3e-6),
        "vast": np.full_like(some, 1e30),
    }


@pytest.mark.parametrize("name", list(strange_cubes()))
def test_strange_cubes_are_no_matter(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For cubes that are not symmetric, or unusual in another way, each command ends without an error or a warning."""
    cube = strange_cubes()[name].astype(np.float32)
    path = str(tmp_path / "delays.nc")
    write_delays(path, Delays(tuple("abcdef"), np.arange(5), cube))
    for command in (["show"], ["show", "--json"], ["features", "--json"], ["diff", path]):
        assert main([*command, path]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_the_commands_say_and_write_what_they_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "delays.nc"
    write_delays(path, make_delays(peaks=50))
    assert main(["features", str(path), "-o", str(tmp_path / "out"), "--json", "--threshold", "0.25"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["features"]["peak_threshold"] == document["features"]["step_threshold"] == 0.25
    assert document["clusters"]["count"] == 2
    assert [group["steps"] for group in document["clusters"]["groups"]] == [[STEP_OF_ALL], [STEP_OF_ALL, STEP_OF_FAR]]
    assert document["compressed"]["ratio"] > 48
    names = {"curves.png", "histograms.png", "clusters.png", "steps.png", "steps.html", "clusters.npz", "features.json"}
    assert {each.name for each in (tmp_path / "out").iterdir()} == names
    assert all((tmp_path / "out" / name).stat().st_size > 1000 for name in names)
    assert main(["show", str(path), "--figure", str(tmp_path / "heat.png"), "--length", "200"]) == 0
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
    assert "32 processes on 32 hosts" in capsys.readouterr().out


def test_a_change_fails_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = make_delays(hosts=12, lengths=2)
    write_delays(tmp_path / "before.nc", before)
    after = replace(before, median=before.median.copy(), lower_quartile=None, upper_quartile=None)
    after.median[:, 1, 2] *= 3
    write_delays(tmp_path / "after.nc", after)
    line = ["diff", str(tmp_path / "before.nc"), str(tmp_path / "after.nc"), "-o", str(tmp_path / "changed.csv")]
    assert main(line) == 0
    assert main([*line, "--fail"]) == 1
    assert (tmp_path / "changed.csv").read_text() == "sender,receiver,ratio\nn01,n02,3\n"
    assert "n01" in capsys.readouterr().out
    assert main([*line, "--fail", "--least", "400%"]) == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "{path}", "--length", "7"], 2),
        (["show", "{path}", "--statistic", "mean"], 2),
        (["show", "{folder}/none.nc"], 3),
        (["features", "{folder}/damaged.nc"], 3),
        (["diff", "{path}", "{folder}/other.csv"], 5),
        (["convert", "{path}", "{folder}/all.csv"], 3),
        (["convert", "{path}", "{folder}/one.csv", "--length", "100"], 0),
        (["convert", "{path}", "{folder}/classic", "--clustbench"], 0),
        (["show", "{path}", "--figure", "{folder}/no/where.png"], 3),
    ],
)
def test_statuses(arguments: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "delays.nc"
    write_delays(path, make_delays(hosts=3, lengths=2))
    (tmp_path / "damaged.nc").write_bytes(path.read_bytes()[:700])
    (tmp_path / "other.csv").write_text(",x,y\nx,0,1\ny,1,0\n")
    assert main([each.format(path=path, folder=tmp_path) for each in arguments]) == status
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert (said == "") == (status == 0)
