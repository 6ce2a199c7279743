# SPDX-License-Identifier: Apache-2.0
"""Each launcher gets the options that make it preload the library on other hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.errors import InconsistentError
from ibprof.launch.preload_settings import (
    Launch,
    Launcher,
    carry,
    extend_list,
    identify_launcher,
    is_inside_job,
    list_variable,
    preload,
)
from ibprof.launch.transport_settings import intranode_settings

LIBRARY = "/opt/lib/libibprof.so"
VARIABLES = {"LD_PRELOAD": LIBRARY, "IBPROF": "BCAST,SEND", "IBPROF_RUN": "r"}


def carried(launcher: Launcher, line: str, **environment: str) -> tuple[str, dict[str, str]]:
    launch = carry(launcher, Launch(line.split(), environment), VARIABLES)
    return " ".join(launch.command), launch.environment


ADDED = f"-x LD_PRELOAD={LIBRARY} -x IBPROF=BCAST,SEND -x IBPROF_RUN=r"


@pytest.mark.parametrize("folder", ["/home/a user/env", "/scratch/a:b"])
def test_a_path_that_cannot_be_preloaded_is_refused_before_the_job_begins(folder: str) -> None:
    with pytest.raises(InconsistentError, match="separate the libraries in LD_PRELOAD"):
        preload(Path(folder, "libibprof.so"), "")


def test_open_mpi_4_is_given_options_and_not_preloaded_itself() -> None:
    line, environment = carried(Launcher.OPENMPI_4, "mpirun -n 2 ./app -x")
    assert (line, environment) == (f"mpirun {ADDED} -n 2 ./app -x", {})


def test_open_mpi_5_is_given_options_and_the_environment_of_what_is_spawned() -> None:
    line, environment = carried(Launcher.OPENMPI_5, "mpirun -n 2 ./app -x", LD_PRELOAD="/a.so", FOO="1")
    options = ADDED.replace(LIBRARY, f"{LIBRARY}:/a.so")
    assert line == f"mpirun {options} -n 2 ./app -x"
    preloaded = f"{LIBRARY}:/a.so"
    daemon = f"env LD_PRELOAD={preloaded} IBPROF=BCAST,SEND IBPROF_RUN=r prted"
    assert environment == {
        **VARIABLES,
        "LD_PRELOAD": preloaded,
        "FOO": "1",
        "PRTE_MCA_prte_launch_agent": daemon,
    }


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        ("", {"PRTE_MCA_prte_launch_agent": "mine"}),
        ("--launch-agent mine ", {}),
        ("--prtemca prte_launch_agent mine ", {}),
    ],
)
def test_the_users_way_to_start_daemons_stays(options: str, environment: dict[str, str]) -> None:
    _, found = carried(Launcher.OPENMPI_5, f"mpirun {options}-n 2 ./app", **environment)
    assert found.get("PRTE_MCA_prte_launch_agent") == environment.get("PRTE_MCA_prte_launch_agent")


def test_daemons_take_words_with_blanks_and_find_their_own_libraries() -> None:
    variables = {"LD_PRELOAD": LIBRARY, "IBPROF_OUTPUT": "/a b", "LD_LIBRARY_PATH": "/lib"}
    launch = carry(Launcher.OPENMPI_5, Launch(["mpirun", "./app"], {}), variables)
    expected = f"env LD_PRELOAD={LIBRARY} 'IBPROF_OUTPUT=/a b' prted"
    assert launch.environment["PRTE_MCA_prte_launch_agent"] == expected


@pytest.mark.parametrize(
    ("asked", "environment"),
    [
        ("-x LD_PRELOAD=/a.so:/b.so ", {}),
        ("", {"LD_PRELOAD": "/a.so /b.so"}),
        ("-x LD_PRELOAD ", {"LD_PRELOAD": "/a.so:/b.so"}),
    ],
)
def test_what_the_user_preloads_stays(asked: str, environment: dict[str, str]) -> None:
    line, _ = carried(Launcher.OPENMPI_5, f"mpirun {asked}-n 2 ./app", **environment)
    assert [word for word in line.split() if "LD_PRELOAD" in word] == [f"LD_PRELOAD={LIBRARY}:/a.so:/b.so"]


def test_what_the_user_sets_stays() -> None:
    line, _ = carried(Launcher.OPENMPI_4, "mpirun --x IBPROF=SEND -n 2 ./app")
    assert [word for word in line.split() if word.startswith("IBPROF=")] == ["IBPROF=SEND"]


def test_every_part_of_a_line_gets_options_in_open_mpi_4_alone() -> None:
    four, _ = carried(Launcher.OPENMPI_4, "mpirun -n 1 ./a : -n 2 ./b")
    assert four.count(f"LD_PRELOAD={LIBRARY}") == 2
    assert four.index(f"LD_PRELOAD={LIBRARY}", four.index(" : ")) < four.index("./b")
    five, _ = carried(Launcher.OPENMPI_5, "mpirun -n 1 ./a : -n 2 ./b")
    assert five.count(f"LD_PRELOAD={LIBRARY}") == 1


def test_the_users_list_of_variables_takes_those_of_ibprof_where_both_would_end_the_job() -> None:
    items = f"FOO;LD_PRELOAD={LIBRARY};IBPROF=BCAST,SEND;IBPROF_RUN=r"
    line, environment = carried(Launcher.OPENMPI_4, "mpirun ./app", OMPI_MCA_mca_base_env_list="FOO")
    assert (line, environment) == ("mpirun ./app", {"OMPI_MCA_mca_base_env_list": items})
    line, _ = carried(Launcher.OPENMPI_4, "mpirun --mca mca_base_env_list FOO ./app")
    assert line == f"mpirun --mca mca_base_env_list {items} ./app"


def test_hydra() -> None:
    line, _ = carried(Launcher.HYDRA, "mpiexec -genv A b -genv LD_PRELOAD /a.so -n 2 ./app")
    assert f"-genv LD_PRELOAD {LIBRARY}:/a.so" in line
    assert line.endswith(" -genv A b -n 2 ./app")
    assert line.count("LD_PRELOAD") == 1


@pytest.mark.parametrize(
    ("asked", "environment", "export"),
    [
        ("", {}, f"ALL,LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"),
        ("--export=A=b,IBPROF ", {}, f"A=b,IBPROF,LD_PRELOAD={LIBRARY},IBPROF_RUN"),
        ("--export=NONE ", {}, f"LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"),
        ("", {"SLURM_EXPORT_ENV": "NONE"}, f"LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"),
        ("--export=ALL,LD_PRELOAD=/a.so ", {}, f"ALL,LD_PRELOAD={LIBRARY}:/a.so,IBPROF,IBPROF_RUN"),
        ("", {"LD_PRELOAD": "/a.so"}, f"ALL,LD_PRELOAD={LIBRARY}:/a.so,IBPROF,IBPROF_RUN"),
        ("--export A=b ", {}, f"A=b,LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"),
    ],
)
def test_srun(asked: str, environment: dict[str, str], export: str) -> None:
    line, made = carried(Launcher.SRUN, f"srun {asked}-n 2 ./app", **environment)
    assert line == f"srun --export={export} -n 2 ./app"
    assert made.get("LD_PRELOAD") == environment.get("LD_PRELOAD")
    # The value of IBPROF has a comma. srun's --export would take the comma as the end of the value.
    assert made.get("IBPROF") == (None if "IBPROF," in asked or "IBPROF " in asked else "BCAST,SEND")


def test_srun_with_parts() -> None:
    """A part of the command without --export uses the --export of the previous part, as in Slurm 22.05."""
    added = f"LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"
    line, _ = carried(Launcher.SRUN, "srun -n 1 a : --export=A=b b : -n 2 c : --export NONE d")
    assert line == f"srun --export=ALL,{added} -n 1 a : --export=A=b,{added} b : -n 2 c : --export={added} d"


@pytest.mark.parametrize("own", ["--export=A=b", "--export A=b"])
def test_options_of_the_program_are_its_own(own: str) -> None:
    added = f"LD_PRELOAD={LIBRARY},IBPROF,IBPROF_RUN"
    line, _ = carried(Launcher.SRUN, f"srun -J true --export NONE -n 1 true {own} : -n 2 true {own}")
    assert line == f"srun --export={added} -J true -n 1 true {own} : -n 2 true {own}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-np 2 h1 h2 ./app X=1", "-np 2 h1 h2 {} ./app X=1"),
        ("-ssh --np=2 h1 h2 A=b ./app", "-ssh --np=2 h1 h2 {} A=b ./app"),
        ("-np 2 -hostfile hosts ./app -np", "-np 2 -hostfile hosts {} ./app -np"),
        ("-export -sg users -np 4 -hostfile=hosts A=b ./app", "-export -sg users -np 4 -hostfile=hosts {} A=b ./app"),
        # The hosts are listed in ~/.mpirun_hosts.
        ("-np 2 A=b ./app x", "-np 2 {} A=b ./app x"),
        ("-np 3 ./app x y", "-np 3 {} ./app x y"),
        ("-config parts -hostfile hosts", "-config parts -hostfile hosts {}"),
    ],
)
def test_mpirun_rsh(line: str, expected: str) -> None:
    made, environment = carried(Launcher.MPIRUN_RSH, f"mpirun_rsh {line}")
    added = f"LD_PRELOAD={LIBRARY} IBPROF=BCAST,SEND IBPROF_RUN=r"
    assert (made, environment) == (f"mpirun_rsh {expected.format(added)}", {})


def test_what_the_user_sets_for_mpirun_rsh_stays() -> None:
    made, _ = carried(Launcher.MPIRUN_RSH, "mpirun_rsh -np 1 h1 LD_PRELOAD=/a.so IBPROF=SEND ./app")
    assert made == f"mpirun_rsh -np 1 h1 LD_PRELOAD={LIBRARY}:/a.so IBPROF_RUN=r IBPROF=SEND ./app"


def test_preload_comes_first_and_once() -> None:
    assert preload(Path("/x.so"), "") == "/x.so"
    assert preload(Path("/x.so"), "/a.so:/x.so /b.so") == "/x.so:/a.so:/b.so"


@pytest.mark.parametrize(
    ("environment", "inside"),
    [
        ({}, False),
        ({"PMIX_RANK": "0"}, True),
        ({"PMI_RANK": "3"}, True),
        ({"SLURM_PROCID": "0"}, False),
        ({"SLURM_PROCID": "0", "SLURM_STEP_ID": "1"}, True),
    ],
)
def test_a_rank_knows_that_it_is_one(environment: dict[str, str], inside: bool) -> None:
    assert is_inside_job(environment) is inside


SAYS = {
    "mpirun (Open MPI) 4.1.4": Launcher.OPENMPI_4,
    "mpirun (Open MPI) 5.0.11": Launcher.OPENMPI_5,
    "mpirun.real (OpenRTE) 2.1.1": Launcher.OPENMPI_4,
    "prterun (PRRTE) 3.0.11": Launcher.OPENMPI_5,
    "HYDRA build details:": Launcher.HYDRA,
    "Intel(R) MPI Library for Linux* OS, Version 2021.18": Launcher.HYDRA,
    "a script of this site": None,
}


@pytest.mark.parametrize("said", SAYS)
def test_launchers_are_distinguished_by_what_they_say(said: str, tmp_path: Path) -> None:
    program = tmp_path / "mpirun"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    assert identify_launcher(str(program)) is SAYS[said]
    other = program.rename(tmp_path / "app")
    assert identify_launcher(str(other)) is None


def test_lists_of_variables() -> None:
    assert extend_list("", ["A", "B"]) == "A;B"
    assert extend_list("B;C", ["A", "B"]) == "B;C;A"
    name = "OMPI_MCA_mca_base_env_list"
    assert list_variable(Launcher.OPENMPI_5, {}) == name
    assert list_variable(Launcher.OPENMPI_4, {}) == f"{name}_internal"
    assert list_variable(Launcher.OPENMPI_4, {name: "A"}) == name


def test_ranks_of_one_host_are_sent_through_the_network_when_asked_for() -> None:
    assert intranode_settings({}) == intranode_settings({"IBPROF_INTRANODE": "0"}) == {}
    asked = intranode_settings({"IBPROF_INTRANODE": "1", "I_MPI_FABRICS": "shm:ofi"})
    assert asked["MPIR_CVAR_NOLOCAL"] == "1"
    assert "I_MPI_FABRICS" not in asked
