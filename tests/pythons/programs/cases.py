# SPDX-License-Identifier: Apache-2.0
# fmt: off
# mypy: ignore-errors
"""Calls the probe from every kind of code, and compares the found frames with the frames that Python itself shows.

    python cases.py FOLDER_OF_THE_PROBE [NAME]

Runs on interpreters from 3.9 on, with almost no standard library.
"""

import sys

sys.path.insert(0, sys.argv[1])
import probe  # probe reads frames while it is imported: IMPORTED_AT is this line

IMPORTED_AT = sys._getframe().f_lineno - 2
VERIFIED = 5
HERE = __file__ = sys._getframe().f_code.co_filename
cases = []


def case(function):
    cases.append(function)
    return function


def code_name(code):
    return code.co_qualname if sys.version_info >= (3, 11) else code.co_name


def is_of_program(name):
    rest = name.rpartition("/mpi4py/")
    own = rest[1] and ("/" not in rest[2] or rest[2].startswith(("futures/", "util/")))
    return not own and not name.startswith("<frozen ") and not name.endswith("/runpy.py")


def encode(character):
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return b"\xef\xbf\xbd"


def truth():
    """Return the program's frames by Python's traceback, from the innermost to the outermost."""
    frames = []
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        name = b"".join(map(encode, code.co_filename))
        if is_of_program(code.co_filename):
            frames.append((name, frame.f_lineno, b"".join(map(encode, code_name(code)))))
        frame = frame.f_back
    return frames


def same(found):
    """Check an answer of probe.here(truth); return the first frame as (file, line, function, key)."""
    frames, expected = found
    shown = [tuple(frame[:3]) for frame in frames]
    assert shown == expected[: len(shown)], "\n  found    %r\n  expected %r" % (shown, expected)
    assert len(shown) == min(len(expected), 64), (len(shown), len(expected))
    return frames[0]


@case
def plain():
    assert same(probe.here(truth))[2].endswith(b"plain")
    x = 1; same(probe.here(truth)); x += 1
    if x:
        same(probe.here(truth))


@case
def keys():
    """Each place in the code has one key, and different places have different keys."""
    found = [same(probe.here(truth))[3] for _ in range(1000)]
    assert len(set(found)) == 1
    two = (same(probe.here(truth))[3], same(probe.here(truth))[3])
    assert two[0] != two[1]  # two instructions of one line have two keys
    first = probe.here_again(20)
    second = probe.here_again(20)
    assert first and second and first != second
    for _ in range(3):
        third = [probe.here_again(2) for _ in range(5000)]
        assert len(set(third)) == 1 and third[0]


def decorate(function):
    def wrapper(*args, **kwargs):
        same(probe.here(truth))
        return function(
            *args,
            **kwargs,
        )

    return wrapper


@case
@decorate
@decorate
def decorators():
    same(probe.here(truth))

    class Callable:
        def __init__(self, function):
            same(probe.here(truth))

        def __call__(self):
            same(probe.here(truth))

    @Callable
    def inner():
        pass

    inner()

    def with_answer(found):
        same(found)
        return lambda function: function

    @with_answer(probe.here(truth))
    # a comment in between
    @with_answer(
        probe.here(truth)
    )
    def another():
        pass


def count(n):
    same(probe.here(truth))
    for i in range(n):
        same(probe.here(truth))
        yield i
        same(probe.here(truth))
    yield from nested(n)


def nested(n):
    if n:
        same(probe.here(truth))
        yield n

        yield from nested(n - 1)


@case
def generators():
    assert list(count(3)) == [0, 1, 2, 3, 2, 1]
    one, two = count(2), count(2)
    next(one)
    next(two)
    next(
        one
    )
    two.close()
    list(one)

    def receives():
        while (yield probe.here(truth)):
            pass
    generator = receives()
    same(next(generator))
    same(generator.send(True))


class Awaitable:
    def __await__(self):
        same(probe.here(truth))
        yield 1
        same(probe.here(truth))
        return 2


async def inner():
    assert await Awaitable() == 2
    same(probe.here(truth))


async def outer():
    same(probe.here(truth))
    await inner()
    async with Context():
        same(probe.here(truth))
    async for _ in Context():
        same(probe.here(truth))
    return [x async for x in Context() if same(probe.here(truth))]


class Context:
    async def __aenter__(self):
        same(probe.here(truth))

    async def __aexit__(self, *_):
        same(probe.here(truth))

    def __aiter__(self):
        self.left = 2
        return self

    async def __anext__(self):
        same(probe.here(truth))
        self.left -= 1
        if self.left < 0:
            raise StopAsyncIteration
        return self.left


@case
def coroutines():
    running = outer()
    others = [outer() for _ in range(3)]
    for other in others:
        other.send(None)
    steps = 0
    try:
        while True:
            running.send(None)
            steps += 1
    except StopIteration as stop:
        assert stop.value == [1, 0]
    assert steps == 1
    for other in others:
        other.close()


@case
def lambdas():
    f = lambda: probe.here(truth)
    same(f())
    same((lambda x:
          probe.here(truth))(1))
    assert sorted([3, 1, 2], key=lambda x: (same(probe.here(truth)), x)[1]) == [1, 2, 3]
    assert list(map(lambda x: same(probe.here(truth))[1], [1]))


@case
def class_bodies():
    class Outer:
        same(probe.here(truth))

        class Inner:
            same(probe.here(truth))
            x = [same(probe.here(truth)) for _ in range(2)]

            def method(self):
                same(probe.here(truth))

            @property
            def attribute(self):
                return same(probe.here(truth))

            @staticmethod
            def static():
                same(probe.here(truth))

            def __getattr__(self, name):
                return same(probe.here(truth))

            def __add__(self, other):
                return same(probe.here(truth))

            def __del__(self):
                same(probe.here(truth))

    one = Outer.Inner()
    one.method()
    one.attribute
    one.unknown
    one.static()
    one + one
    del one

    class Meta(type):
        def __new__(cls, *args):
            same(probe.here(truth))
            return super().__new__(cls, *args)

    class Made(metaclass=Meta):
        pass


@case
def comprehensions():
    for found in [probe.here(truth) for _ in range(3)]:
        same(found)
    [
        same(
            probe.here(truth)
        )
        for x in (1, 2)
        if same(probe.here(truth))
        for y in [same(probe.here(truth)) for _ in range(2)]
    ]
    {same(probe.here(truth)) for _ in range(2)}
    {x: same(probe.here(truth))
     for x in range(2)}
    list(same(probe.here(truth)) for _ in range(2))
    {(lambda: same(probe.here(truth)))() for _ in range(2)}


@case
def several_lines():
    same(probe.here(
        truth))
    same(
        probe.here(
            truth
        )
    )
    found = (probe
             .here
             (
                 truth))
    same(found)
    x = [
        1, probe.here(truth),
        3,
        probe.here(
            (lambda: truth)(),
        ),
    ]
    (same(x[1]), same(x[3]))
    same(
        probe.here(truth)
        if x
        else None
    )
    assert (
        same(probe.here(truth))
        and same(probe.here(truth))
    )
    f"""
    {same(probe.here(truth))}
    """
    while same(
        probe.here(truth)
    ):
        break
    try:
        raise ValueError(
            same(probe.here(truth)))
    except ValueError:
        same(probe.here(truth))
    finally:
        same(probe.here(truth))
    for _ in (
        same(probe.here(truth)),
    ):
        continue


class Manager:
    def __enter__(self):
        same(probe.here(truth))

    def __exit__(self, *_):
        same(probe.here(truth))


@case
def managers():
    with Manager():
        same(probe.here(truth))
    with Manager(), \
         Manager():
        pass
    try:
        with Manager():
            raise KeyError
    except KeyError:
        same(probe.here(truth))


def run(text, name="<string>", mode="exec", **variables):
    variables.update(probe=probe, truth=truth, same=same)
    result = eval(compile(text, name, mode), variables)
    return variables if mode == "exec" else result


@case
def executed_code():
    run("same(probe.here(truth))")
    run("\n\n\nx = 1\nsame(probe.here(truth))\n")
    assert same(run("\n\nprobe.here(truth)", mode="eval"))[1] == 3
    run("def f():\n\n  return same(probe.here(truth))\nassert f()[1] == 3", "relative.py")
    run("exec('\\n\\nsame(probe.here(truth))')")
    run("", "")
    run("same(probe.here(truth))", "")


@case
def lines_far_away():
    """Line numbers and their differences need one or more bytes. Some lines precede the code's first line."""
    for far in (126, 127, 128, 129, 254, 255, 256, 257, 511, 32767, 32768, 65535, 65536, 1000000):
        run("\n" * far + "same(probe.here(truth))")
        run("x = 1" + "\n" * far + "same(probe.here(truth))\nsame(probe.here(truth))")
        run("def f():\n  pass" + "\n" * far + "  same(probe.here(truth))\nf()\n" + "\n" * far + "f()")
        run("for i in [" + "\n" * far + "1]:\n  same(probe.here(truth))\n")
        run("same(probe.here((\n" + "\n" * far + "truth)))")
    run("x = 1\n" * 3000 + "same(probe.here(truth))\n")
    run("x = [" + "1+x,\n" * 3000 + "]\nsame(probe.here(truth))\n", x=1)
    run("if x:\n" + "".join("  y%d = x(%d)\n" % (i, i) for i in range(2000)) + "  same(probe.here(truth))\n", x=int)
    run("for i in range(2):\n" + "".join("  y%d = i;" % i for i in range(300)) + "\n  same(probe.here(truth))\n"
        + "".join("  if i == %d: same(probe.here(truth))\n" % i for i in range(300)))


@case
def lines_by_hand():
    """The code's line numbers refer to another text, as in templates and notebooks."""
    import_ast = compile("same(probe.here(truth))\nx = 1\nsame(probe.here(truth))", "template", "exec", 1 << 10)
    body = import_ast.body
    for first, second in ((5, 2), (1, 1), (70000, 3), (3, 70000), (300, 100), (2**31 - 1, 1)):
        for statement, line in ((body[0], first), (body[2], second)):
            stack = [statement]
            while stack:
                node = stack.pop()
                for attribute in ("lineno", "end_lineno"):
                    if hasattr(node, attribute):
                        setattr(node, attribute, line)
                for field in node._fields:
                    value = getattr(node, field)
                    stack += value if isinstance(value, list) else [value] if hasattr(value, "_fields") else []
        run(import_ast, "template")


@case
def names():
    """Paths and names are not ASCII, have characters of every width, are not valid text, or are long."""
    for name in ("plain", "caf\u00e9", "\u0444\u0430\u0439\u043b", "\U0001f40d\u00e9a\u0444", "caf\udce9/\udc80x", "a" * 5000,
                 "/" + "\u00e9/" * 3000 + "x.py", "\U00010000" * 3000):
        run("same(probe.here(truth))", name + ".py")
    for name in ("caf\u00e9", "\u0444\u0443\u043d\u043a\u0446\u0438\u044f", "\U00020000\u0444", "n" * 3000):
        run("def %s():\n return same(probe.here(truth))\n%s()" % (name, name))
        run("class %s:\n def f(self):\n  return same(probe.here(truth))\n%s().f()" % (name, name))
    run("same(probe.here(truth))", "a\ud800b")


@case
def texts_that_do_not_fit():
    for bytes_ in (4, 5, 6, 7, 8, 9, 10, 16, 100):
        for name in ("short.py", "/a/long/path/to/a/file.py", "/\u00e9\u00e9\u00e9\u00e9/\u00e9.py", "\U0001f40d" * 9):
            probe.set_text_bytes(bytes_)
            shown = run("x = probe.here(truth)", name)["x"][0][0][0]
            probe.set_text_bytes(16384)
            whole = name.encode()
            if len(whole) < bytes_:
                assert shown == whole, (shown, whole)
            else:
                assert shown.startswith(b"...") and len(shown) < bytes_ and whole.endswith(shown[3:]), (shown, bytes_)
                shown[3:].decode()  # raises an error if a character was cut
                assert bytes_ - len(shown) <= 4, (shown, bytes_)


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    return same(probe.here(truth))


@case
def deep_recursion():
    recurse(900)
    sys.setrecursionlimit(20000)
    recurse(15000)

    def through_c(depth):
        return sorted([depth], key=lambda d: d and through_c(d - 1) or same(probe.here(truth)))

    through_c(40)


@case
def reused_memory():
    """A key belongs to one line for ever, even if new code uses the memory of freed code."""
    import gc

    places = {}
    addresses = set()
    heads = ["", "x = 1\n" * 10, "x = 1\n" * 40, "x = 1\ny = 2\n", "def f(): pass\n"]
    for i in range(3000):
        text = heads[i % 5] + "\n" * (i % 97) + "z = probe.here(truth)\n" + heads[i % 3]
        name = "same" if i % 2 else "other"
        code = compile(text, name, "exec")
        addresses.add(id(code))
        variables = {"probe": probe, "truth": truth}
        exec(code, variables)
        del code
        if i % 100 == 0:
            gc.collect()  # frees code objects in free-threaded Python
        frame = same(variables["z"])
        place = places.setdefault(frame[3], frame[:3])
        assert place == frame[:3], (place, frame)
    assert len(addresses) < 3000  # or nothing was reused


@case
def forked():
    import posix

    child = posix.fork()
    if not child:
        try:
            same(probe.here(truth))
            posix._exit(7)
        except BaseException as error:
            print(error)
            posix._exit(1)
    assert posix.waitpid(child, 0)[1] >> 8 == 7


@case
def threads():
    """Each thread finds its own frames while other threads run."""
    import _thread

    def left():
        return same(probe.here(truth))

    def right():
        x = [same(probe.here(truth)) for _ in range(3)]
        return x[0]

    def work(function, answers, lock):
        try:
            for _ in range(400):
                answers.append(function())
        except BaseException as error:
            answers.append(error)
        lock.release()

    answers = [[] for _ in range(8)]
    locks = []
    for i in range(8):
        lock = _thread.allocate_lock()
        lock.acquire()
        locks.append(lock)
        _thread.start_new_thread(work, ((left, right)[i % 2], answers[i], lock))
    for lock in locks:
        lock.acquire()
    for i in range(8):
        for answer in answers[i]:
            if isinstance(answer, BaseException):
                raise answer
        assert len(answers[i]) == 400
        assert {answer[3] for answer in answers[i]} == {answers[i % 2][0][3]}  # a place has the same key in all threads
    assert answers[0][0][3] != answers[1][0][3]


@case
def threads_of_others():
    found = []
    before, without_frames = probe.in_foreign_thread(lambda: found.append(probe.here(truth)))
    assert (before, without_frames) == (0, 0)
    same(found[0])


@case
def traced():
    """Debuggers, profilers and coverage tools do not change the lines that are found."""
    def trace(frame, event, argument):
        return trace

    for setter in (sys.settrace, sys.setprofile):
        setter(trace)
        try:
            same(probe.here(truth))
            recurse(3)
            [same(probe.here(truth)) for _ in range(2)]
            list(count(2))
        finally:
            setter(None)
    if hasattr(sys, "monitoring"):
        sys.monitoring.use_tool_id(3, "test")
        sys.monitoring.set_events(3, sys.monitoring.events.LINE | sys.monitoring.events.INSTRUCTION)
        sys.monitoring.register_callback(3, sys.monitoring.events.LINE, lambda *_: None)
        try:
            same(probe.here(truth))
            recurse(3)
            list(count(2))
        finally:
            sys.monitoring.set_events(3, 0)
            sys.monitoring.free_tool_id(3)


@case
def frames_of_mpi4py():
    """The first frame outside mpi4py is shown. If all frames are mpi4py's, the innermost frame is shown."""
    for name in ("/x/site-packages/mpi4py/util/pkl5.py", "/x/mpi4py/bench.py", "/y/mpi4py/futures/_core.py"):
        own = run("def f(g): return g()\ndef h(g): return f(g)\ndef k():\n\n  return probe.here(truth)", name)
        assert same(own["k"]())[0] == HERE.encode()
        assert same(own["h"](lambda: probe.here(truth)))[0] == HERE.encode()
        assert same(own["h"](own["k"]))[0] == HERE.encode()
    for name in ("/home/mpi4py/demo/osu.py", "mpi4py/x.py", "/mpi4py.py", "/mpi4py/test/runtests.py", "/x/my_mpi4py/y.py"):
        assert same(run("x = probe.here(truth)", name)["x"])[0] == name.encode()
    for name in ("<frozen importlib._bootstrap>", "/usr/lib/python3.10/runpy.py"):
        assert same(run("x = probe.here(truth)", name)["x"])[0] == HERE.encode()


@case
def nothing_but_mpi4py():
    import _thread

    lock = _thread.allocate_lock()
    lock.acquire()
    text = "def f(found, lock):\n  found.append(probe.here(truth))\n  lock.release()"
    found = []
    _thread.start_new_thread(run(text, "/x/mpi4py/bench.py")["f"], (found, lock))
    lock.acquire()
    frames, expected = found[0]
    assert [frame[:3] for frame in frames] == [(b"/x/mpi4py/bench.py", 2, b"f")], frames
    assert expected == []


@case
def imports():
    """While a module is imported, the frames of the import system are skipped."""
    frames = probe.seen_at_import()
    assert frames[0][:2] == (HERE.encode(), IMPORTED_AT), frames[0]


@case
def by_ctypes():
    import _ctypes

    library = _ctypes.dlopen(probe.__file__, 0)
    address = _ctypes.dlsym(library, "probe_note")
    _ctypes.call_cdeclfunction(address, ()); line = sys._getframe().f_lineno
    assert probe.last_noted()[0][:2] == (HERE.encode(), line)

    def inner():
        _ctypes.call_function(
            address,
            (),
        )
    inner()
    assert probe.last_noted()[0][1] == inner.__code__.co_firstlineno + 1
    assert probe.last_noted()[0][2].endswith(b"inner")


for run_case in cases:
    name = run_case.__name__ if run_case.__name__ != "wrapper" else "decorators"
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    try:
        run_case()
        print("right", name, flush=True)
    except BaseException as error:
        where = error.__traceback__
        while where.tb_next:
            where = where.tb_next
        print("wrong", name, type(error).__name__, error, "line", where.tb_lineno, flush=True)
assert probe.state() == VERIFIED
same(probe.here(truth))


class Last:
    """An object that the ending interpreter deletes after the names of this file."""

    def __del__(self, here=probe.here, write=__import__("posix").write):
        found = here(lambda: None)[0][0]
        write(1, b"right at_shutdown\n" if found[:2] == self.expected else b"wrong at_shutdown\n")


Last.expected = HERE.encode(), Last.__del__.__code__.co_firstlineno + 1
last = Last()
