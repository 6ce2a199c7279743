# SPDX-License-Identifier: Apache-2.0
"""Slurm's short form of the names of hosts is expanded, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import UsageError
from ibprof.text.host_expressions import expand_hosts, join_hosts


@pytest.mark.parametrize(
    ("expression", "hosts"),
    [
        ("node[01-04,7]", ["node01", "node02", "node03", "node04", "node7"]),
        ("a,b[1-2],c", ["a", "b1", "b2", "c"]),
        ("r[1-2]n[09-10]-ib", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib"]),
        ("login1", ["login1"]),
        (" n[8-11] ", ["n8", "n9", "n10", "n11"]),
        ("node[01-03,7],login1", ["node01", "node02", "node03", "node7", "login1"]),
        ("rack[1-2]n[08-10]", ["rack1n08", "rack1n09", "rack1n10", "rack2n08", "rack2n09", "rack2n10"]),
        ("a,b,a", ["a", "b", "a"]),
        ("a,, b,", ["a", "b"]),
    ],
)
def test_slurm_expressions(expression: str, hosts: list[str]) -> None:
    assert expand_hosts(expression) == hosts


@pytest.mark.parametrize(
    "expression", ["", "n[1-", "n[4-1]", "n[x]", "n]", "n[]", ",", "n[0-9999999]", "n[1-99999][1-99999]"]
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError):
        expand_hosts(expression)


@given(st.text(alphabet="n[]-,019 x", max_size=20))
def test_any_expression_is_expanded_or_refused(expression: str) -> None:
    try:
        hosts = expand_hosts(expression)
    except UsageError:
        return
    assert hosts
    assert all(host and not set(host) & set("[]") for host in hosts)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["node01", "node02", "node03", "login"], "node[01-03],login"),
        (["node9", "node10"], "node9,node10"),
        (["n2", "n1"], "n2,n1"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["n1", "n1"], "n1,n1"),
        ([], ""),
    ],
)
def test_hosts_are_joined_in_their_order(names: list[str], text: str) -> None:
    assert join_hosts(names) == text
    assert not names or expand_hosts(text) == names


@given(st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,3}", fullmatch=True), min_size=1, max_size=30))
def test_joined_hosts_expand_to_what_they_were(names: list[str]) -> None:
    assert expand_hosts(join_hosts(names)) == names
