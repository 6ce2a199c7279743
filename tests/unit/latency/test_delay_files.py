# SPDX-License-Identifier: Apache-2.0
"""Delays are read back unchanged. clustbench's layout and matrices are read. Damaged files are refused."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netCDF4 import Dataset

from ibprof.errors import InconsistentError, InputError
from ibprof_lab.lab_choices import STATISTICS
from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.files.netcdf_files import write_classic
from ibprof_lab.latency.model.delays import Delays, clear_diagonal, empty_delays
from ibprof_testing.paths import DATA
from ibprof_testing.strategies import scale_examples

Form = Literal["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC", "NETCDF4"]


def sample(hosts: tuple[str, ...] = ("a", "a", "b"), lengths: tuple[int, ...] = (0, 64, 128)) -> Delays:
    rng = np.random.default_rng(1)
    cores = tuple(f"0-{each}" for each in range(len(hosts)))
    delays = empty_delays(hosts, np.array(lengths), cores, {"mpi": "Open MPI", "batch_s": 0.5, "seed": 3})
    for cube in delays.present.values():
        cube[:] = rng.random(cube.shape)
        cube[rng.random(cube.shape) < 0.2] = np.nan
        clear_diagonal(cube)
    assert delays.repetitions is not None
    delays.repetitions[:] = rng.integers(0, 100, delays.repetitions.shape)
    return delays


def assert_same(one: Delays, other: Delays) -> None:
    assert one.hosts == other.hosts
    assert one.cores == other.cores
    assert one.lengths.tolist() == other.lengths.tolist()
    assert dict(one.attributes) == dict(other.attributes)
    assert list(one.present) == list(other.present)
    for name, cube in one.present.items():
        assert np.array_equal(cube, other.present[name], equal_nan=True), name
    assert np.array_equal(one.repetitions, other.repetitions)  # type: ignore[arg-type]


@pytest.mark.parametrize("hosts", [("a",), ("a", "b"), ("a", "a", "b"), tuple(f"h{each}" for each in range(40))])
def test_what_is_written_reads_back(hosts: tuple[str, ...], tmp_path: Path) -> None:
    delays = sample(hosts)
    write_delays(tmp_path / "delays.nc", delays)
    assert_same(delays, read_delays(tmp_path / "delays.nc"))


def test_a_file_is_what_the_documentation_says(tmp_path: Path) -> None:
    write_delays(tmp_path / "delays.nc", sample())
    with Dataset(tmp_path / "delays.nc") as dataset:
        assert dataset.data_model == "NETCDF4"
        assert dataset.format == "ibprof delays 1"
        median = dataset.variables["median"]
        assert median.dtype == np.float32
        assert median.dimensions == ("length", "sender", "receiver")
        assert median.units == "s"
        assert median.filters()["zlib"]
        assert median.filters()["shuffle"]
        assert list(dataset.variables["host"][:]) == ["a", "a", "b"]


def test_statistics_not_asked_for_cost_nothing(tmp_path: Path) -> None:
    write_delays(tmp_path / "delays.nc", sample())
    assert list(read_delays(tmp_path / "delays.nc", statistics=("minimum",)).present) == ["median", "minimum"]


def test_names_matrices_and_bandwidth() -> None:
    delays = sample()
    assert delays.labels == ("a#0", "a#1", "b")
    delays.median[:] = 2.0
    clear_diagonal(delays.median)
    assert delays.matrix(64)[0, 1] == 2.0
    assert delays.bandwidth()[2, 0, 1] == 64.0
    assert np.isnan(delays.bandwidth()[2, 0, 0])
    with pytest.raises(KeyError):
        delays.matrix(65)
    with pytest.raises(ValueError, match="shape"):
        Delays(("a",), np.array([0]), np.zeros((1, 2, 2), np.float32))


def write_clustbench(
    path: Path, cube: np.ndarray, first: int = 0, step: int = 100, form: Form = "NETCDF3_64BIT_OFFSET", **scalars: int
) -> None:
    """Write a file as network_tests2 writes it, with the netCDF library itself."""
    values = {
        "proc_num": cube.shape[1], "test_type": 1, "data_type": 2, "begin_mes_length": first,
        "end_mes_length": first + step * len(cube), "step_length": step, "noise_mes_length": 0, "num_noise_mes": 0,
        "num_noise_proc": 0, "num_repeates": 100,
    } | scalars  # fmt: skip
    with Dataset(path, "w", format=form) as dataset:
        for name, size in (("x", cube.shape[1]), ("y", cube.shape[2]), ("n", None), ("strings", 101)):
            dataset.createDimension(name, size)
        for name, value in values.items():
            dataset.createVariable(name, "i4")[...] = value
        dataset.createVariable("data", "f8", ("n", "x", "y"))[: len(cube)] = cube


def test_clustbenchs_files_are_read_together(tmp_path: Path) -> None:
    cube = np.arange(2 * 3 * 3, dtype=float).reshape(2, 3, 3) * 1e-6
    for number, end in enumerate(("average", "median", "deviation", "min"), 1):
        write_clustbench(tmp_path / f"run_{end}.nc", cube * number, first=50, data_type=number)
    (tmp_path / "run_hosts.txt").write_text("one\ntwo\nthree\n")
    delays = read_delays(tmp_path / "run_min.nc")
    assert delays.hosts == ("one", "two", "three")
    assert delays.lengths.tolist() == [50, 150]
    assert delays.attributes["mode"] == "one_to_one"
    for factor, name in enumerate(("mean", "median", "deviation", "minimum"), 1):
        # The row is the sender.
        assert delays.present[name][1, 0, 2] == pytest.approx(factor * 11e-6)
    assert delays.repetitions is not None
    assert (delays.repetitions == 100).all()


@pytest.mark.parametrize("form", get_args(Form))
def test_clustbenchs_layout_in_any_netcdf(form: Form, tmp_path: Path) -> None:
    """network_tests2 writes classic netCDF. Newer programs based on network_tests2 write NetCDF-4."""
    cube = np.arange(3 * 4 * 4, dtype=float).reshape(3, 4, 4) * 1e-6
    write_clustbench(tmp_path / "run_median.nc", cube, first=8, step=8, form=form, test_type=3)
    (tmp_path / "run_hosts.txt").write_text("a\nb\nc\nd\n")
    delays = read_delays(tmp_path / "run_median.nc")
    others = ~np.eye(4, dtype=bool)
    assert delays.median[:, others] == pytest.approx(cube[:, others])
    assert (delays.hosts, delays.lengths.tolist()) == (("a", "b", "c", "d"), [8, 16, 24])
    assert delays.attributes["mode"] == "async"


def test_one_file_of_clustbench_alone_will_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_clustbench(tmp_path / "run_min.nc", np.ones((1, 2, 2)))
    with caplog.at_level(logging.WARNING):
        delays = read_delays(tmp_path / "run_min.nc")
    assert delays.attributes["statistic"] == "minimum"
    assert delays.median.tolist() == [[[0, 1], [1, 0]]]
    assert "run_hosts.txt" in caplog.text


def test_clustbenchs_files_that_contradict_are_refused(tmp_path: Path) -> None:
    write_clustbench(tmp_path / "run_median.nc", np.ones((1, 2, 2)))
    write_clustbench(tmp_path / "run_min.nc", np.ones((1, 3, 3)))
    with pytest.raises(InconsistentError, match=r"run_min\.nc"):
        read_delays(tmp_path / "run_median.nc")
    (tmp_path / "run_min.nc").unlink()
    (tmp_path / "run_hosts.txt").write_text("only\n")
    with pytest.raises(InputError, match="2 hosts"):
        read_delays(tmp_path / "run_median.nc")


def test_what_is_written_for_clustbench_has_its_layout(tmp_path: Path) -> None:
    delays = sample()
    written = write_classic(tmp_path / "run", delays)
    ends = ["median", "average", "deviation", "min"]
    assert [path.name for path in written] == [*(f"run_{end}.nc" for end in ends), "run_hosts.txt"]
    with Dataset(tmp_path / "run_average.nc") as dataset:
        assert dataset.data_model == "NETCDF3_64BIT_OFFSET"
        assert dataset.dimensions["n"].isunlimited()
        assert len(dataset.dimensions["strings"]) == 101
        assert dataset.variables["data"].dtype == np.float64
        assert int(dataset.variables["step_length"][...]) == 64
        assert int(dataset.variables["data_type"][...]) == 1
    back = read_delays(tmp_path / "run_average.nc")
    assert np.array_equal(back.mean, delays.mean, equal_nan=True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="evenly spaced"):
        write_classic(tmp_path / "odd", sample(lengths=(0, 1, 8)))


@pytest.mark.parametrize(
    "text",
    [
        ",a,b\na,0,3\nb,4,0\n",
        "name;a;b\na;0;3\nb;4;0\n",
        "a b\na 0 3\nb 4 0\n",
        "# comment\n\ta\tb\na\t0\t3\nb\t4\t0\n",
        '"",“a”,b\n“a”,0,3\nb,4,0\n'.replace("“a”", "a"),
    ],
)
def test_matrices_with_names(text: str, tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text(text)
    delays = read_delays(tmp_path / "matrix.csv")
    assert delays.hosts == ("a", "b")
    assert delays.median == pytest.approx(np.array([[[0, 3e-6], [4e-6, 0]]]))


def test_matrices_without_names_and_numpys(tmp_path: Path) -> None:
    (tmp_path / "matrix.txt").write_text("9 3\n- 9\n")
    delays = read_delays(tmp_path / "matrix.txt", unit=1.0)
    assert delays.hosts == ("0", "1")
    assert np.array_equal(delays.median, np.array([[[0, 3], [np.nan, 0]]]), equal_nan=True)
    np.save(tmp_path / "cube.npy", np.full((4, 3, 3), 2.0))
    assert read_delays(tmp_path / "cube.npy", unit=1.0).median[3, 0, 1] == 2
    np.savez(tmp_path / "cube.npz", delays=np.ones((2, 2, 2)), hosts=["x", "y"], lengths=[8, 16])
    delays = read_delays(tmp_path / "cube.npz")
    assert delays.hosts == ("x", "y")
    assert delays.lengths.tolist() == [8, 16]


def test_a_csv_of_one_length_reads_back(tmp_path: Path) -> None:
    delays = sample(lengths=(0,))
    write_delays(tmp_path / "delays.csv", delays)
    back = read_delays(tmp_path / "delays.csv")
    assert back.hosts == delays.labels
    assert back.median == pytest.approx(delays.median, rel=1e-5, nan_ok=True)
    with pytest.raises(InputError, match="one message length"):
        write_delays(tmp_path / "delays.csv", sample())


def test_values_that_no_time_has_are_not_measured(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "matrix.csv").write_text(",a,b,c\na,5,-1,2\nb,nan,7,0\nc,1e99,2,0\n")
    with caplog.at_level(logging.WARNING):
        delays = read_delays(tmp_path / "matrix.csv")
    expected = np.array([[[0, np.nan, 2], [np.nan, 0, 0], [np.nan, 2, 0]]]) * 1e-6
    assert delays.median == pytest.approx(expected, nan_ok=True)
    assert "2 values" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty file"),
        (",a,b\na,0,x\nb,1,0\n", ":2: expected a delay, found 'x'"),
        (",a,b\na,0,1\n", "2 rows"),
        (",a,b\na,0,1\nc,1,0\n", ":3: expected the row of 'b'"),
        (",a,b\na,0,1\nb,1,0,4\n", ":3: expected 2 delays"),
        ("0 1\n1\n", ":2: expected 2 delays"),
        ("hello\n", "expected"),
        (b"\xff\xfe\0\1\0", "binary"),
        (b"a,b\0", "binary"),
        (b"CDF\x01rubbish", "clustbench"),
        (b"CDF\x02", "damaged"),
        (b"\x89HDF\r\n\x1a\n" + b"rubbish" * 40, "damaged"),
        (b"\x93NUMPY\x01", "damaged"),
        (b"PK\x03\x04rubbish", "damaged"),
    ],
)
def test_invalid_delays_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "delays"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        read_delays(path)
    assert str(path) in str(caught.value)


def test_other_netcdf_and_missing_files_are_refused(tmp_path: Path) -> None:
    with Dataset(tmp_path / "other.nc", "w") as dataset:
        dataset.createDimension("time", 2)
    with pytest.raises(InputError, match="ibprof delays 1"):
        read_delays(tmp_path / "other.nc")
    with Dataset(tmp_path / "classic.nc", "w", format="NETCDF3_CLASSIC") as dataset:
        dataset.createVariable("proc_num", "i4")
    with pytest.raises(InputError, match="without data"):
        read_delays(tmp_path / "classic.nc")
    with pytest.raises(InputError, match="No such file"):
        read_delays(tmp_path / "none.nc")
    with pytest.raises(InputError, match="directory"):
        read_delays(tmp_path)


def test_a_header_that_asks_for_the_world_is_refused(tmp_path: Path) -> None:
    with Dataset(tmp_path / "vast.nc", "w") as dataset:
        dataset.setncattr("format", "ibprof delays 1")
        dataset.createDimension("length", 1)
        for axis in ("sender", "receiver"):
            dataset.createDimension(axis, 3_000_000)
        dataset.createVariable("median", "f4", ("length", "sender", "receiver"), chunksizes=(1, 16, 16), zlib=True)
    with pytest.raises(MemoryError):
        read_delays(tmp_path / "vast.nc")


@settings(max_examples=scale_examples(40), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 255))
def test_a_damaged_byte_ends_in_delays_or_an_input_error(place: int, value: int) -> None:
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        for make in ("netcdf", "classic", "nvbandwidth"):
            path = Path(folder) / "run_median.nc"
            if make == "netcdf":
                write_delays(path, sample())
            elif make == "nvbandwidth":
                path.write_bytes((DATA / "delays" / "nvbandwidth.json").read_bytes())
            else:
                write_classic(Path(folder) / "run", sample())
            content = bytearray(path.read_bytes())
            content[place % min(len(content), 4096)] = value
            path.write_bytes(content)
            with contextlib.suppress(InputError, InconsistentError, MemoryError):
                assert set(read_delays(path).present) <= set(STATISTICS)


def test_seconds_that_are_read_as_microseconds_are_refused(tmp_path: Path) -> None:
    seconds = np.array([[0, 1.6e-6], [1.6e-6, 0]])
    np.save(tmp_path / "delays.npy", seconds)
    np.savetxt(tmp_path / "delays.csv", seconds, delimiter=",")
    for name in ("delays.npy", "delays.csv"):
        with pytest.raises(InputError, match=r"expected delays of at least 0\.1 ns, found at most 0\.0016 ns; --unit"):
            read_delays(tmp_path / name)
        assert read_delays(tmp_path / name, unit=1.0).median.max() == pytest.approx(1.6e-6)
