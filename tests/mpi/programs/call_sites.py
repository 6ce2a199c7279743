# SPDX-License-Identifier: Apache-2.0
"""A comment at each call names the operation, and the sum of bytes that the line sends on two ranks.

Calls are in decorators, generators, comprehensions, lambdas, a thread, and text that is compiled at run time.
"""

import functools
import threading
from collections.abc import Callable, Iterator

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
other = 1 - rank
buffer = bytearray(1 << 16)


def send(length: int) -> None:
    world.Isend([buffer, length, MPI.BYTE], other, 1).Wait()  # ISEND 400


def traced(function: Callable[[int], None]) -> Callable[[int], None]:
    @functools.wraps(function)
    def wrapper(length: int) -> None:
        world.Allreduce([bytes(4), MPI.INT], [bytearray(4), MPI.INT])  # ALLREDUCE 8
        function(length)

    return wrapper


@traced
def send_traced(length: int) -> None:
    world.Isend(  # ISEND 1000
        [buffer, length, MPI.BYTE],
        other,
        1,
    ).Wait()


def lengths(count: int) -> Iterator[int]:
    for length in range(count):
        world.Isend([buffer, 10, MPI.BYTE], other, 1).Wait()  # ISEND 60
        yield length


def receive(count: int) -> None:
    for _ in range(count):
        world.Recv([buffer, MPI.BYTE], other, 1)


class Exchange:
    def __init__(self) -> None:
        self.length = 7

    def __enter__(self) -> int:
        world.Bcast([buffer, 9, MPI.BYTE], 0)  # BCAST 9
        return self.length

    def __exit__(self, *arguments: object) -> None:
        world.Bcast([buffer, 11, MPI.BYTE], 0)  # BCAST 11


def in_thread() -> None:
    world.Isend([buffer, 70, MPI.BYTE], other, 1).Wait()  # ISEND 140


send(150)
send(50)
send_traced(500)
assert list(lengths(3)) == [0, 1, 2]
receive(6)
with Exchange() as length:
    [world.Isend([buffer, length, MPI.BYTE], other, 1).Wait() for _ in range(2)]  # ISEND 28
receive(2)
sorted("a", key=lambda text: world.Isend([buffer, 12 + len(text), MPI.BYTE], other, 1).Wait())  # ISEND 26
receive(1)
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
receive(1)
for _ in range(5):
    exec("\n\nworld.Barrier()\nworld.Allgather([bytes(3), MPI.BYTE], [bytearray(6), MPI.BYTE])")
