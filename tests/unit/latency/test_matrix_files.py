# SPDX-License-Identifier: Apache-2.0
"""Matrices of delays are read in common formats: triangles, and a line for each pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_lab.cli.topology import main
from ibprof_lab.lab_choices import UNITS
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_testing.samples.shared_errors import processor

LOWER = [[0, np.nan, np.nan], [1, 0, np.nan], [2, 3, 0]]
UPPER = [[0, 1, 2], [np.nan, 0, 3], [np.nan, np.nan, 0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0\n1,0\n2,3,0\n", LOWER),
        ("1\n2,3\n", LOWER),
        ("\n1\n2,3\n", LOWER),
        ("1\n2 3\n", LOWER),
        (",,\n1,,\n2,3,\n", LOWER),
        (",,\r\n1,,\r\n2,3,\r\n", LOWER),
        ("0;1;2\n0;3\n0\n", UPPER),
        ("1,2\n3\n", UPPER),
        (",a,b,c\na\nb,1\nc,2,3\n", LOWER),
        (",a,b,c\na,0\nb,1,0\nc,2,3,0\n", LOWER),
    ],
)
def test_a_triangle_is_a_matrix(tmp_path: Path, text: str, expected: list[list[float]]) -> None:
    (tmp_path / "m.csv").write_bytes(text.encode())
    assert np.allclose(read_delays(tmp_path / "m.csv").median[0] * 1e6, expected, equal_nan=True)


@pytest.mark.parametrize(
    "text",
    [
        ";a;b\na;0;1,5\nb;2,5;0\n",
        "\ta\tb\na\t0\t1,5\nb\t2,5\t0,0\n",
        ",a,b,\na,0,1.5,\nb,2.5,0,\n",
        "a,0,1.5\nb,2.5,0\n",
        "0,1.5,\n2.5,0,\n",
        '"0","1.5"\n"2.5","0"\n',
        "  # by hand\n,a,b\na,0,1.5\nb,2.5,0\n",
    ],
)
def test_spreadsheets_write_other_forms(tmp_path: Path, text: str) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        (tmp_path / "m.csv").write_text(text, encoding=encoding)
        delays = read_delays(tmp_path / "m.csv")
        assert np.allclose(delays.median[0] * 1e6, [[0, 1.5], [2.5, 0]]), encoding
        assert delays.labels in (("a", "b"), ("0", "1"))


def test_names_in_quotes_may_have_separators(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(',"rack 1, a",b\n"rack 1, a",0,1\nb,1,0\n')
    assert read_delays(tmp_path / "m.csv").labels == ("rack 1, a", "b")


def test_an_infinite_delay_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("0,inf,1\n-Infinity,0,2\n1,2,0\n")
    assert np.isnan(read_delays(tmp_path / "m.csv").median[0][[0, 1], [1, 0]]).all()


@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        ("latency", 1e-6), ("latency_us", 1e-6), ("latency (µs)", 1e-6), ("RTT [ms]", 1e-3), ("ns", 1e-9),
        ("avg_ns", 1e-9), ("time_s", 1.0), ("latency/ms", 1e-3), ("pairs", 1e-6), ("time", 1e-6),
    ],
)  # fmt: skip
def test_a_column_of_pairs_may_name_its_unit(tmp_path: Path, column: str, seconds: float) -> None:
    (tmp_path / "m.csv").write_text(f"src,dst,{column}\nh1,h2,2\n")
    assert read_delays(tmp_path / "m.csv").median[0][0, 1] == pytest.approx(2 * seconds)
    (tmp_path / "m.csv").write_text(f"src;dst;{column}\nh1;h2;2,5\nh1;h3;\n")
    median = read_delays(tmp_path / "m.csv").median[0]
    assert median[0, 1] == pytest.approx(2.5 * seconds)
    assert np.isnan(median[0, 2])


@pytest.mark.parametrize(
    "text",
    [
        "a,b,latency\nh1,h2,1.5\nh1,h3,2\nh2,h3,3\n",
        "h1 h2 1.5\nh1 h3 2\nh2 h3 3\n",
        "src,dst,bytes,latency_us\nh1,h2,8,1.5\nh1,h3,8,2\nh2,h3,8,3\n",
        "Host1\tHost2\tRTT\nh1\th2\t1.4\nh1\th2\t1.5\nh1\th2\t9\nh1\th3\t2\nh2\th3\t3\n",
        "h1,h2,1.5\nh1,h3,2\nh2,h3,3\nh3,h1,nan\n",
        '"src","dst","latency (ns)"\nh1,h2,1500\nh1,h3,2000\nh2,h3,3000\n',
        "client,server,rtt_us\nh1,h2,1.5\nh1,h3,2\nh2,h3,3\n",
        "src_host;dst_host;time\nh1;h2;1,5\nh1;h3;2\nh2;h3;3\n",
    ],
)
def test_lines_of_pairs_are_a_matrix(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    delays = read_delays(tmp_path / "m.csv")
    assert delays.labels == ("h1", "h2", "h3")
    expected = [[0, 1.5, 2], [np.nan, 0, 3], [np.nan, np.nan, 0]]
    assert np.allclose(delays.median[0] * 1e6, expected, equal_nan=True)


def test_pairs_of_numbered_ranks_need_a_header_or_more_lines_than_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("0 1 3\n0 2 5\n1 2 4\n2 1 4\n")
    assert read_delays(tmp_path / "m.csv").median[0][1, 2] == pytest.approx(4e-6)
    (tmp_path / "m.csv").write_text("rank1,rank2,us\n0,1,3\n1,2,4\n")
    assert read_delays(tmp_path / "m.csv").median[0][1, 2] == pytest.approx(4e-6)
    (tmp_path / "named.csv").write_text("host,node1,node2\nnode1,0,1\nnode2,1,0\n")
    assert read_delays(tmp_path / "named.csv").labels == ("node1", "node2")
    (tmp_path / "square.csv").write_text("0,1,2\n1,0,3\n2,3,0\n")
    assert read_delays(tmp_path / "square.csv").labels == ("0", "1", "2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,latency\nh1,h2,x\n", r"m\.csv:2: expected a delay, found 'x'"),
        ("a,b,latency\nh1,h2\n", r"m\.csv:2: expected two ends and a delay in column 3, found 'h1,h2'"),
        ("1,2,3\n4\n5,6\n", r"m\.csv:\d: expected 3 "),
        (",a,b,c\na,0,1,2\nb,1,0\nc,2\n", r"m\.csv:4: expected 3 delays, found 1"),
        ("a,b,latency\nh1,h2,1\n,h2,3\n", r"m\.csv:3: expected two ends and a delay, found ',h2,3'"),
        ("0,1,2..0\n1,0,2\n2,2,0\n", r"m\.csv:1: expected a delay, found '2\.\.0'"),
        ("src,dst,latency\nh1,h2,1,234\n", r"m\.csv:2: expected 3 fields, as in the first line, found 4"),
        ("src,dst,latency\n", r"m\.csv:1: expected two ends and a delay, found no line with a delay"),
        (
            "src;dst;ns\nh1;h2;1.234\nh1;h3;950,5\n",
            r"m\.csv:2: expected a decimal comma, as in other delays, found '1\.234'",
        ),
        ("src,dst,size,time\nh1,h2,8,1\nh1,h2,4K,9\n", r"m\.csv:3: expected a number of bytes in column 3, found '4K'"),
    ],
)
def test_other_rows_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_delays(tmp_path / "m.csv")


@pytest.mark.parametrize("column", ["bytes", "msg_size", "Message Size (B)"])
def test_pairs_of_several_message_lengths_are_as_many_matrices(tmp_path: Path, column: str) -> None:
    text = f"src,dst,{column},latency_us\nh1,h2,8,1.5\nh1,h2,1048576,150\nh2,h1,8,1.7\nh1,h2,8,1.6\n"
    (tmp_path / "m.csv").write_text(text)
    delays = read_delays(tmp_path / "m.csv")
    assert delays.lengths.tolist() == [8, 1048576]
    expected = np.array([[[0, 1.55], [1.7, 0]], [[0, 150], [np.nan, 0]]])
    assert np.allclose(delays.median * 1e6, expected, equal_nan=True)


def test_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes("src,dst,µs\nh1,h2,1\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"m\.csv:1: expected text in UTF-8 or UTF-16, found byte 0xb5"):
        read_delays(tmp_path / "m.csv")


def test_a_triangle_in_nanoseconds_is_inferred(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = processor(2)
    size = len(sample.delays)
    rows = [
        ",".join(f"{sample.delays[row, column] * 1e9:.3f}" if column < row else "" for column in range(size))
        for row in range(size)
    ]
    (tmp_path / "cores.csv").write_text("\n".join(rows) + "\n")
    assert main(["infer", str(tmp_path / "cores.csv"), "--unit", "ns", "--bootstrap", "0"]) == 0
    assert capsys.readouterr().out.startswith(f"{size} hosts")
    slowest = read_delays(tmp_path / "cores.csv", unit=UNITS["ns"]).median[0]
    assert np.nanmax(slowest) == pytest.approx(sample.delays.max(), rel=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "von;nach;Latenz [ns]\na;b;1478,06\na;c;3000\nb;c;3100,5\n",
        "sep=;\nvon;nach;Latenz [ns]\na;b;1478,06\na;c;3000\nb;c;3100,5\n",
        "source;cible;latence (\u00b5s)\na;b;1,47806\na;c;3\nb;c;3,1005\n",
        "\u6e90,\u76ee\u7684,\u5ef6\u8fdf(us)\na,b,1.47806\na,c,3\nb,c,3.1005\n",
        "origen\tdestino\tlatencia\na\tb\t1.47806\na\tc\t3\nb\tc\t3.1005\n",
        "Kern A;Kern B;ns\n0;1;1478,06\n0;2;3000\n1;2;3100,5\n",
        "from,to,latency,unit\na,b,1478.06,ns\na,c,3,us\nb,c,3.1005,us\n",
        "from,to,us\na,b,1.47806\na,b,-1\na,c,3\nb,c,3.1005\n",
        "latency [ns],a,b,c\na,0,1478.06,3000\nb,,0,3100.5\nc,,,0\n",
        ",a [ns],b [ns],c [ns]\na,0,1478.06,3000\nb,,0,3100.5\nc,,,0\n",
        ",a,b,c\na,1.47806,3\nb,3.1005\nc,\n",
        ",a,b,c\na,0,1.47806,3\nb,0,3.1005\nc,0\n",
    ],
)
def test_headers_in_any_language_and_their_units_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    delays = read_delays(tmp_path / "m.csv")
    assert delays.labels in (("a", "b", "c"), ("0", "1", "2"))
    assert delays.median[0][np.triu_indices(3, 1)] * 1e6 == pytest.approx([1.47806, 3, 3.1005])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("von;nach;ns\na;b;1\na;c;fehlt\nb;c;3\n", "m.csv:3: expected a delay, found 'fehlt'"),
        ("von;nach;ns\na;b;1\na;c;1.478,50\nb;c;3\n", "m.csv:3: expected a delay, found '1.478,50'"),
        (
            "von;nach;wie;ns\na;b;x;1\na;c;x;2\na;d;x;2\nb;c;x;2\n",
            "or lines with two ends and a delay (`from,to,latency_us`)",
        ),
        ("from,to,latency,unit\na,b,1,ns\na,c,2,parsec\n", "m.csv:3: expected a unit of time in column 4, found"),
    ],
)
def test_other_lines_of_pairs_are_refused_with_what_is_expected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_delays(tmp_path / "m.csv")
    assert message in str(raised.value)
