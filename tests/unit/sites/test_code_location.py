# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.sites.code_location import CodeLocation, drop_parameters, shortest_tails, site_names


def test_lines_by_base_name() -> None:
    assert site_names([CodeLocation("/src/halo.c", 212), CodeLocation("/src/main.f90", 7)]) == [
        "halo.c:212",
        "main.f90:7",
    ]


def test_equal_base_names_have_the_shortest_distinguishing_tail() -> None:
    locations = [CodeLocation(path, 3) for path in ("/a/x/util.c", "/b/x/util.c", "/b/y/util.c", "/b/main.c")]
    assert site_names(locations) == ["a/x/util.c:3", "b/x/util.c:3", "y/util.c:3", "main.c:3"]


def test_a_path_that_ends_another_one() -> None:
    assert shortest_tails(["util.c", "/src/util.c", "/util.c"]) == {
        "util.c": "util.c",
        "/src/util.c": "src/util.c",
        "/util.c": "/util.c",
    }


def test_one_file_by_two_paths() -> None:
    assert site_names([CodeLocation("/a/./x.c", 1), CodeLocation("/a/b/../x.c", 2)]) == ["x.c:1", "x.c:2"]


def test_without_lines() -> None:
    locations = [
        CodeLocation(object="/usr/lib/libpetsc.so", function="VecScatter", offset=0x1F),
        CodeLocation(object="/opt/app", offset=0x4011),
        CodeLocation("/src/app.c", 0, "/opt/app", "main", 9),
    ]
    assert site_names(locations) == ["VecScatter+0x1f", "app+0x4011", "main+0x9"]


def test_a_function_in_several_objects() -> None:
    locations = [CodeLocation(object=f"/opt/{name}", function="main", offset=9) for name in ("ocean", "ice")]
    assert site_names(locations) == ["main+0x9 (ocean)", "main+0x9 (ice)"]


@pytest.mark.parametrize(
    ("function", "short"),
    [
        ("global_stat(gmx_global_stat*, t_commrec const*, double (*) [3])", "global_stat"),
        (
            "void gmx::(anonymous namespace)::sum<float>(std::vector<int>&) const",
            "gmx::(anonymous namespace)::sum<float>",
        ),
        ("A::f(int) const::{lambda(int)#1}::operator()(int) const", "A::f::{lambda(int)#1}::operator()"),
        ("std::ostream& operator<< <int>(std::ostream&, X<int> const&)", "operator<< <int>"),
        ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"),
        ("Foo::operator bool() const", "Foo::operator bool"),
        ("decltype(auto) twice<int>(int)", "twice<int>"),
        ("f((anonymous namespace)::T)", "f"),
        ("operator delete[](void*)", "operator delete[]"),
        ("__solver_MOD_step", "__solver_MOD_step"),
        ("", ""),
    ],
)
def test_a_function_of_cpp_has_no_parameters_in_its_name(function: str, short: str) -> None:
    assert drop_parameters(function) == short


@given(st.text("ab:<>(){} ~&*operatornew", max_size=40))
def test_any_function_has_a_name(function: str) -> None:
    assert bool(drop_parameters(function)) == bool(function)


def test_functions_that_differ_in_parameters_alone_keep_them() -> None:
    names = ("send(int)", "send(float)", "receive(int)")
    locations = [CodeLocation(object="/opt/app", function=name, offset=9) for name in names]
    assert site_names(locations) == ["send(int)+0x9", "send(float)+0x9", "receive+0x9"]


PATHS = st.lists(st.text(string.ascii_lowercase[:3], min_size=1, max_size=2), min_size=1, max_size=4).map("/".join)


@given(st.sets(st.tuples(st.sampled_from(["", "/"]), PATHS).map("".join)))
def test_tails_are_distinct_ends(paths: set[str]) -> None:
    tails = shortest_tails(paths)
    assert len(set(tails.values())) == len(paths)
    assert all(path.endswith(tail) for path, tail in tails.items())
