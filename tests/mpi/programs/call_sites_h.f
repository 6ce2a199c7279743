! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! Fortran 77. A comment at each call states the bytes that the line sends
! on both ranks together. gfortran records the last line of a call that
! has several lines.
      program sites_h
      implicit none
      include 'mpif.h'
      integer me, i, error
      integer numbers(100)

      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, error)
      do 10 i = 1, 5
        if (me .eq. 0) then
          call MPI_SEND(numbers, 10, MPI_INTEGER, 1, 0,
     &      MPI_COMM_WORLD, error) ! SEND 200
          call MPI_SEND(numbers, 20, MPI_INTEGER, 1, 0,
     &      MPI_COMM_WORLD, error) ! SEND 400
        else
          call MPI_RECV(numbers, 10, MPI_INTEGER, 0, 0,
     &      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
          call MPI_RECV(numbers, 20, MPI_INTEGER, 0, 0,
     &      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        end if
        call MPI_BCAST(numbers, 2, MPI_INTEGER, 0,
     &    MPI_COMM_WORLD, error) ! BCAST 40
   10 continue
      call MPI_FINALIZE(error)
      end
