! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! Two lines call a subroutine that calls MPI through another subroutine. A comment names each line that the test checks.
module exchanges
    use mpi
    implicit none
    integer :: numbers(100), me, ierror
contains
    subroutine exchange(count)
        integer, intent(in) :: count
        if (me == 0) then
            call MPI_Send(numbers, count, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierror) ! @send
        else
            call MPI_Recv(numbers, count, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        end if
        numbers(1) = ierror
    end subroutine
    subroutine halo(count)
        integer, intent(in) :: count
        call exchange(count) ! @halo
        numbers(2) = ierror
    end subroutine
end module

program callers
    use exchanges
    implicit none
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, ierror)
    call halo(10) ! @first
    call halo(20) ! @second
    call MPI_Finalize(ierror)
end program
