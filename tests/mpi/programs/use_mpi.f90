! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! The module of Fortran 90: a broadcast, an all-to-all, an all-reduce and a ring of messages.
program use_mpi_program
    use mpi
    implicit none
    integer, parameter :: block = 100
    integer :: error, request, again, me, ranks, next, previous
    double precision :: total
    double precision, allocatable :: from(:), into(:)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    allocate (from(block*ranks), into(block*ranks))
    from = me
    call MPI_Comm_dup(MPI_COMM_WORLD, again, error)
    call MPI_Bcast(from, block, MPI_DOUBLE_PRECISION, 0, again, error)
    call MPI_Alltoall(from, block, MPI_DOUBLE_PRECISION, into, block, MPI_DOUBLE_PRECISION, again, error)
    call MPI_Allreduce(from, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    next = mod(me + 1, ranks)
    previous = mod(me + ranks - 1, ranks)
    call MPI_Irecv(into, block, MPI_DOUBLE_PRECISION, previous, 1, MPI_COMM_WORLD, request, error)
    call MPI_Send(from, block, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    call MPI_Finalize(error)
end program
