! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! The header of Fortran 77: a broadcast, an all-to-all, an all-reduce
! and a ring of messages.
      program mpif_h
      implicit none
      include 'mpif.h'
      integer block, most
      parameter (block = 100, most = 16)
      integer error, request, again, me, ranks, next, previous
      double precision total, from(block*most), into(block*most)

      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, error)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
      from = me
      call MPI_COMM_DUP(MPI_COMM_WORLD, again, error)
      call MPI_BCAST(from, block, MPI_DOUBLE_PRECISION, 0, again, error)
      call MPI_ALLTOALL(from, block, MPI_DOUBLE_PRECISION,
     &     into, block, MPI_DOUBLE_PRECISION, again, error)
      call MPI_ALLREDUCE(from, total, 1, MPI_DOUBLE_PRECISION,
     &     MPI_SUM, MPI_COMM_WORLD, error)
      next = mod(me + 1, ranks)
      previous = mod(me + ranks - 1, ranks)
      call MPI_IRECV(into, block, MPI_DOUBLE_PRECISION, previous, 1,
     &     MPI_COMM_WORLD, request, error)
      call MPI_SEND(from, block, MPI_DOUBLE_PRECISION, next, 1,
     &     MPI_COMM_WORLD, error)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, error)
      call MPI_FINALIZE(error)
      end
