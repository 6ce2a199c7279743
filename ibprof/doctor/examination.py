# SPDX-License-Identifier: Apache-2.0
"""All checks, in the order in which users need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ibprof.doctor.calls_trial import try_calls
from ibprof.doctor.finding import DoctorFinding
from ibprof.doctor.machine_check import examine_machine
from ibprof.doctor.mpi_library import examine_mpi
from ibprof.doctor.program_check import identify_program, judge_program
from ibprof.native.installed_files import find_library

_OPENSHMEM = (
    "puts, gets and atomics are counted, by port and not by PE, only where they are posted by verbs "
    "(IBPROF_SOURCE=exact selects such transports); MPI calls of the program are recorded like any"
)


def examine(environment: Mapping[str, str], command: Sequence[str] = ()) -> Iterator[DoctorFinding]:
    """Yield the findings of all checks for a recording.

    Args:
        command: the command to record, with or without its launcher; empty for any command.
    """
    library = find_library()
    program = identify_program(command) if command else None
    if program:
        findings = list(judge_program(program, library))
        yield from findings
        if program.openshmem:
            yield DoctorFinding("SHMEM", good=True, text=f"{program.openshmem}: {_OPENSHMEM}")
    if not program or all(finding.good for finding in findings):
        findings = list(examine_mpi(program, library, environment))
        yield from findings
        if program and all(finding.good for finding in findings):
            yield from try_calls(program, command, library, environment)
    yield from examine_machine(library, environment)
