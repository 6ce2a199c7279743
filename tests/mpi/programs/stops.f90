! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
!
! Fortran's ends of a program, before or after MPI_Finalize:
!
!     stops stop|error-stop|finalized|end
program stops
    use mpi
    implicit none
    character(len=20) :: how
    integer :: error, sum

    call get_command_argument(1, how)
    call MPI_Init(error)
    call MPI_Allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    print *, 'sum', sum
    if (how == 'stop') stop 3
    if (how == 'error-stop') error stop 4
    call MPI_Finalize(error)
    if (how == 'finalized') stop 5
end program stops
