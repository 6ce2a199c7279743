! SPDX-License-Identifier: Apache-2.0
! Copyright The ibprof developers
! Special cases in each interface of Fortran: in place, without items, to MPI_PROC_NULL, to the rank itself, between
! groups, one-sided, on a graph. The interface is mpif.h with -DHEADER, mpi_f08 with -DF08, otherwise mpi.
#ifdef F08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define WINDOW type(MPI_Win)
#define DATATYPE type(MPI_Datatype)
#else
#define COMM integer
#define REQUEST integer
#define WINDOW integer
#define DATATYPE integer
#endif
program corners
#ifdef F08
    use mpi_f08
    implicit none
#elif defined(HEADER)
    implicit none
    include 'mpif.h'
#else
    use mpi
    implicit none
#endif
    integer, parameter :: items = 3000
    integer :: me, ranks, error, i
    integer, allocatable :: from(:), into(:), counts(:), places(:), none(:), bytes(:)
    DATATYPE, allocatable :: types(:)
    COMM :: some, reversed, half, between, merged
    logical :: upper

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    allocate (from(items*ranks*2), into(items*ranks*2), counts(ranks), places(ranks), none(ranks), bytes(ranks))
    allocate (types(ranks))
    from = me
    into = -me
    counts = items
    none = 0
    do i = 1, ranks
        places(i) = (i - 1)*items
        bytes(i) = places(i)*4
        types(i) = MPI_INTEGER
    end do
    call use_all(MPI_COMM_WORLD)
    call use_all(MPI_COMM_SELF)
    call MPI_Comm_split(MPI_COMM_WORLD, 0, -me, reversed, error)
    call use_all(reversed)
    i = MPI_UNDEFINED
    if (me > 0) i = 1
    call MPI_Comm_split(MPI_COMM_WORLD, i, -me, some, error)
    if (some /= MPI_COMM_NULL) call use_all(some)
    upper = me >= ranks/2
    i = 0
    if (upper) i = 1
    call MPI_Comm_split(MPI_COMM_WORLD, i, me, half, error)
    i = ranks/2
    if (upper) i = 0
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, i, 7, between, error)
    call use_groups(between)
    call MPI_Intercomm_merge(between, upper, merged, error)
    call use_all(merged)
    call sends()
    call windows()
    call graphs()
    call MPI_Comm_free(between, error)
    call MPI_Comm_free(half, error)
    if (some /= MPI_COMM_NULL) call MPI_Comm_free(some, error)
    call MPI_Finalize(error)
contains
    subroutine use_all(comm)
        COMM, intent(in) :: comm
        REQUEST :: request
        integer :: rank, size
        call MPI_Comm_rank(comm, rank, error)
        call MPI_Comm_size(comm, size, error)
        call MPI_Bcast(from, items, MPI_INTEGER, size - 1, comm, error)
        call MPI_Allreduce(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, comm, error)
        if (rank == 0) then
            call MPI_Reduce(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, 0, comm, error)
            call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, into, items, MPI_INTEGER, 0, comm, error)
            call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INTEGER, into, counts, places, MPI_INTEGER, 0, comm, error)
            call MPI_Scatter(from, items, MPI_INTEGER, MPI_IN_PLACE, items, MPI_INTEGER, 0, comm, error)
            call MPI_Scatterv(from, counts, places, MPI_INTEGER, MPI_IN_PLACE, items, MPI_INTEGER, 0, comm, error)
        else
            call MPI_Reduce(from, into, items, MPI_INTEGER, MPI_MAX, 0, comm, error)
            call MPI_Gather(from, items, MPI_INTEGER, into, items, MPI_INTEGER, 0, comm, error)
            call MPI_Gatherv(from, items, MPI_INTEGER, into, counts, places, MPI_INTEGER, 0, comm, error)
            call MPI_Scatter(from, items, MPI_INTEGER, into, items, MPI_INTEGER, 0, comm, error)
            call MPI_Scatterv(from, counts, places, MPI_INTEGER, into, items, MPI_INTEGER, 0, comm, error)
        end if
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, into, items, MPI_INTEGER, comm, error)
        call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, into, counts, places, MPI_INTEGER, comm, error)
        call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, into, items, MPI_INTEGER, comm, error)
        call MPI_Alltoallv(MPI_IN_PLACE, none, none, MPI_INTEGER, into, counts, places, MPI_INTEGER, comm, error)
        call MPI_Alltoallw(MPI_IN_PLACE, none, none, types, into, counts, bytes, types, comm, error)
        call MPI_Alltoallv(from, counts, places, MPI_INTEGER, into, counts, places, MPI_INTEGER, comm, error)
        call MPI_Alltoallw(from, counts, bytes, types, into, counts, bytes, types, comm, error)
        call MPI_Reduce_scatter(MPI_IN_PLACE, into, counts, MPI_INTEGER, MPI_MAX, comm, error)
        call MPI_Reduce_scatter_block(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, comm, error)
        call MPI_Scan(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, comm, error)
        call MPI_Exscan(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, comm, error)
        call MPI_Bcast(from, 0, MPI_INTEGER, 0, comm, error)
        call MPI_Alltoall(from, 0, MPI_INTEGER, into, 0, MPI_INTEGER, comm, error)
        call MPI_Alltoallv(from, none, places, MPI_INTEGER, into, none, places, MPI_INTEGER, comm, error)
        call MPI_Barrier(comm, error)
        call MPI_Iallreduce(MPI_IN_PLACE, into, items, MPI_INTEGER, MPI_MAX, comm, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
        call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INTEGER, into, items, MPI_INTEGER, comm, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
        call MPI_Ialltoallw(MPI_IN_PLACE, none, none, types, into, counts, bytes, types, comm, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
        call MPI_Ibcast(from, items, MPI_INTEGER, 0, comm, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
        call MPI_Ibarrier(comm, request, error)
        call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    end subroutine
    subroutine use_groups(comm)
        COMM, intent(in) :: comm
        integer :: rank, root
        call MPI_Comm_rank(comm, rank, error)
        root = 0
        if (.not. upper) then
            root = MPI_PROC_NULL
            if (rank == 0) root = MPI_ROOT
        end if
        call MPI_Bcast(from, items, MPI_INTEGER, root, comm, error)
        call MPI_Reduce(from, into, items, MPI_INTEGER, MPI_MAX, root, comm, error)
        call MPI_Gather(from, items, MPI_INTEGER, into, items, MPI_INTEGER, root, comm, error)
        call MPI_Scatter(from, items, MPI_INTEGER, into, items, MPI_INTEGER, root, comm, error)
        call MPI_Allreduce(from, into, items, MPI_INTEGER, MPI_MAX, comm, error)
        call MPI_Alltoall(from, items, MPI_INTEGER, into, items, MPI_INTEGER, comm, error)
        call MPI_Barrier(comm, error)
    end subroutine
    subroutine sends()
        REQUEST :: requests(2)
        integer :: next, previous
        next = mod(me + 1, ranks)
        previous = mod(me + ranks - 1, ranks)
        call MPI_Send(from, items, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, error)
        call MPI_Sendrecv(from, items, MPI_INTEGER, next, 1, into, items, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, error)
        call MPI_Sendrecv_replace(into, items, MPI_INTEGER, next, 1, previous, 1, MPI_COMM_WORLD, &
                                  MPI_STATUS_IGNORE, error)
        call MPI_Send_init(from, items, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(1), error)
        call MPI_Recv_init(into, items, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, requests(2), error)
        do i = 1, 3
            call MPI_Startall(2, requests, error)
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
        end do
        call MPI_Request_free(requests(1), error)
        call MPI_Request_free(requests(2), error)
        call MPI_Irecv(into, items, MPI_INTEGER, me, 4, MPI_COMM_WORLD, requests(1), error)
        call MPI_Issend(from, items, MPI_INTEGER, me, 4, MPI_COMM_WORLD, requests(2), error)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
        call MPI_Send(from, 0, MPI_INTEGER, next, 5, MPI_COMM_WORLD, error)
        call MPI_Recv(into, items, MPI_INTEGER, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    end subroutine
    subroutine windows()
        WINDOW :: window
        integer, asynchronous :: memory(items)
        integer :: next, old
        integer(MPI_ADDRESS_KIND) :: place
        next = mod(me + 1, ranks)
        memory = 0
        place = items*4
        call MPI_Win_create(memory, place, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
        place = 0
        call MPI_Win_fence(0, window, error)
        call MPI_Put(from, items, MPI_INTEGER, next, place, items, MPI_INTEGER, window, error)
        call MPI_Put(from, items, MPI_INTEGER, MPI_PROC_NULL, place, items, MPI_INTEGER, window, error)
        call MPI_Win_fence(0, window, error)
        call MPI_Get(into, items, MPI_INTEGER, next, place, items, MPI_INTEGER, window, error)
        call MPI_Win_fence(0, window, error)
        call MPI_Accumulate(from, items, MPI_INTEGER, next, place, items, MPI_INTEGER, MPI_SUM, window, error)
        call MPI_Win_fence(0, window, error)
        call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window, error)
        call MPI_Fetch_and_op(me, old, MPI_INTEGER, next, place, MPI_SUM, window, error)
        call MPI_Win_unlock(next, window, error)
        call MPI_Win_free(window, error)
    end subroutine
    subroutine graphs()
        COMM :: graph, grid
        integer :: sources(2), targets(2), sizes(1)
        logical :: periods(1)
        if (ranks < 3) return
        sources = [mod(me + ranks - 1, ranks), mod(me + ranks - 2, ranks)]
        targets = [mod(me + 1, ranks), mod(me + 2, ranks)]
        call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED, &
                                            MPI_INFO_NULL, .false., graph, error)
        call MPI_Neighbor_allgather(from, items, MPI_INTEGER, into, items, MPI_INTEGER, graph, error)
        call MPI_Neighbor_alltoall(from, items, MPI_INTEGER, into, items, MPI_INTEGER, graph, error)
        sizes = ranks
        periods = .false.
        call MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, .false., grid, error)
        call MPI_Neighbor_alltoall(from, items, MPI_INTEGER, into, items, MPI_INTEGER, grid, error)
        call MPI_Comm_free(graph, error)
        call MPI_Comm_free(grid, error)
    end subroutine
end program
