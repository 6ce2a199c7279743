/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * A comment at each call states the bytes that the line sends on all ranks together. Two ranks. Calls are in templates,
 * lambdas, members and a destructor. With an argument, the program opens this library and calls its function. First,
 * the program executes itself, like programs that change their environment.
 */
#include <mpi.h>

#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <stdexcept>
#include <unistd.h>
#include <vector>

static int rank;

template <typename Item> static MPI_Datatype type_of();
template <> MPI_Datatype type_of<char>()
{
    return MPI_CHAR;
}
template <> MPI_Datatype type_of<double>()
{
    return MPI_DOUBLE;
}

template <typename Item> static void everywhere(std::vector<Item> items)
{
    MPI_Bcast(items.data(), int(items.size()), type_of<Item>(), 0, MPI_COMM_WORLD); // BCAST 83
}

template <int depth> static void deeper()
{
    if constexpr (depth > 0) {
        char byte = 0;
        MPI_Bcast(&byte, 1, MPI_CHAR, 0, MPI_COMM_WORLD); // BCAST 3
        deeper<depth - 1>();
    }
}

struct Guard {
    ~Guard()
    {
        char bytes[5] = {};
        MPI_Bcast(bytes, 5, MPI_CHAR, 0, MPI_COMM_WORLD); // BCAST 5
    }
};

static void fail()
{
    Guard guard;
    throw std::runtime_error("expected");
}

int main(int argc, char **argv)
{
    if (!getenv("EXECUTED_AGAIN")) {
        setenv("EXECUTED_AGAIN", "1", 1);
        execv("/proc/self/exe", argv);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    everywhere(std::vector<char>(3));
    everywhere(std::vector<double>(10));
    deeper<3>();
    const std::function<void(int)> send = [](int bytes) {
        std::vector<char> block(std::size_t(bytes) + 0U);
        if (rank == 0)
            MPI_Send(block.data(), bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD); // SEND 70
        else
            MPI_Recv(block.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    };
    for (int bytes : {20, 50}) send(bytes);
    try {
        fail();
    } catch (const std::runtime_error &) {
    }
    if (argc > 1) {
        void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return 2;
        reinterpret_cast<void (*)()>(dlsym(library, "called_late"))();
        dlclose(library);
    }
    MPI_Finalize();
    return 0;
}
