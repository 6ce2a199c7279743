! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! The interface of Fortran 2008: a broadcast, an all-to-all, an all-reduce and a ring of messages.
program use_mpi_f08_program
    use mpi_f08
    implicit none
    integer, parameter :: block = 100
    integer :: me, ranks, next, previous
    double precision :: total
    double precision, allocatable :: from(:), into(:)
    type(MPI_Request) :: request
    type(MPI_Comm) :: again

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    allocate (from(block*ranks), into(block*ranks))
    from = me
    call MPI_Comm_dup(MPI_COMM_WORLD, again)
    call MPI_Bcast(from, block, MPI_DOUBLE_PRECISION, 0, again)
    call MPI_Alltoall(from, block, MPI_DOUBLE_PRECISION, into, block, MPI_DOUBLE_PRECISION, again)
    call MPI_Allreduce(from, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    next = mod(me + 1, ranks)
    previous = mod(me + ranks - 1, ranks)
    call MPI_Irecv(into, block, MPI_DOUBLE_PRECISION, previous, 1, MPI_COMM_WORLD, request)
    call MPI_Send(from, block, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Finalize()
end program
