! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! A comment at each call states the bytes that the line sends on all ranks together. Two ranks.
program call_sites
    use mpi
    implicit none
    integer :: me, i, ierror
    integer :: numbers(100)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, ierror)
    do i = 1, 5
        if (me == 0) then
            call MPI_Send(numbers, 10, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierror) ! SEND 200
            call MPI_Send(numbers, 20, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierror) ! SEND 400
        else
            call MPI_Recv(numbers, 10, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
            call MPI_Recv(numbers, 20, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        end if
        call MPI_Bcast(numbers, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror) ! BCAST 40
        call MPI_Bcast(numbers, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror) ! BCAST 60
    end do
    call MPI_Finalize(ierror)
end program
