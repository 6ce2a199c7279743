# SPDX-License-Identifier: Apache-2.0
"""Each rank sends 1,000 bytes to the next rank, by functions of the MPI library in the first argument.

The program must run without a standard library, so it uses only ctypes' part in C.
"""

# mypy: ignore-errors
import _ctypes
import sys


class Pointer(_ctypes._SimpleCData):
    _type_ = "P"


class Integer(_ctypes._SimpleCData):
    _type_ = "i"


class Buffer(_ctypes.Array):
    _type_ = Integer
    _length_ = 250


library = _ctypes.dlopen(sys.argv[1], 0x102)


def call(name, *arguments):
    return _ctypes.call_function(_ctypes.dlsym(library, name), arguments)


def send(buffer, to):
    _ctypes.call_function(send_address, (buffer, 1000, byte, to, 7, world))


call("MPI_Init", None, None)
send_address = _ctypes.dlsym(library, "MPI_Send")
world, byte = (Pointer(_ctypes.dlsym(library, "ompi_mpi_" + name)) for name in ("comm_world", "byte"))
size, rank, given, taken = Integer(), Integer(), Buffer(), Buffer()
call("MPI_Comm_size", world, _ctypes.byref(size))
call("MPI_Comm_rank", world, _ctypes.byref(rank))
send(given, (rank.value + 1) % size.value)
call("MPI_Recv", taken, 1000, byte, (rank.value - 1) % size.value, 7, world, None)
call("MPI_Finalize")
