# SPDX-License-Identifier: Apache-2.0
"""`ibprof-place --hosts`: each form of host list names the hosts, and the slots, that its writer meant."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.placement.slots import read_free_hosts
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample

HOSTS = find_hosts([load_sample("testbed44", IBDIAGNET).fabric])


def read(path: Path, content: str | bytes, slots: int = 1) -> dict[str, int]:
    """Return the slots of each host by its name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return {HOSTS.name[host]: room for host, room in read_free_hosts(path, HOSTS, slots).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host03\nhost01\n", {"host03": 3, "host01": 3}),
        ("# mine\n\n  host03 # the third\n", {"host03": 3}),
        ("host03 slots=2 max_slots=4\nhost01\n", {"host03": 2, "host01": 3}),
        ("host03:2\nhost01:5\n", {"host03": 2, "host01": 5}),
        ("HOST03.cluster.example\r\nuser@host01 slots = 4\r\n", {"host03": 3, "host01": 4}),
        ("host03 slots=0\nhost01\n", {"host01": 3}),
        ("host03\nhost03\nhost01\n", {"host03": 2, "host01": 1}),  # $PBS_NODEFILE
        ("host03 slots=2\nhost03 slots=2\nhost01\n", {"host03": 4, "host01": 1}),
        ("host[01-03,40]\n", {"host01": 3, "host02": 3, "host03": 3, "host40": 3}),
        ("host[09-10],host12", {"host09": 3, "host10": 3, "host12": 3}),
        ("host[09-10]\nhost12 slots=1\n", {"host09": 3, "host10": 3, "host12": 1}),
        ("rank 0=host03 slot=0\nrank 1=host01 slot=0\nrank 2=host03 slot=1\n", {"host03": 2, "host01": 1}),
        ("\ufeffhost03\n", {"host03": 3}),
    ],
)
def test_forms(tmp_path: Path, text: str, expected: dict[str, int]) -> None:
    assert read(tmp_path / "hosts", text, slots=3) == expected


def test_it_may_be_compressed(tmp_path: Path) -> None:
    assert read(tmp_path / "hosts.gz", gzip.compress(b"host03\n")) == {"host03": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# nobody\n", "hosts: expected a host a line, found none"),
        ("", "hosts: expected .*empty"),
        ("host01\nhost99\n", "hosts:2: expected a host of the fabric, found 'host99'"),
        ("host01\nhost[01-90]\n", "hosts:2: expected a host of the fabric"),
        ("host01\nhost[2-1]\n", "hosts:2: expected hosts as"),
        ("host01\nhost02 slots=many\n", "hosts:2: expected a host, perhaps with slots"),
        ("host01\nhost02 and more\n", "hosts:2: expected a host, perhaps with slots"),
        ("host01 slots=65536\n", "hosts:1: expected fewer than 65536 slots"),
        ("host[1-9999999]\n", "hosts:1: expected hosts as"),
        ("rank 0=host01\nrank 0=host02\n", "hosts:2: expected each rank once"),
        (b"\xff\xfe\x00\n", "hosts: expected a text file"),
    ],
)
def test_what_is_no_host_list_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "hosts", content)
