# SPDX-License-Identifier: Apache-2.0
"""Find the paths of the installed native parts of ibprof."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ibprof.errors import MissingToolError

_SYSTEM_OTF2 = "libotf2.so.10", "libopen-trace-format2.so.10"  # the second name is Debian's

_TEXT_BEGINS = "/* -- cffi begins -- */"
_TEXT_ENDS = "/* -- cffi ends -- */"


NCCL_PROFILER = "libnccl-profiler-ibprof.so"


def find_library() -> Path:
    """Return the path of libibprof.so.

    Raises:
        MissingToolError: the library is not built.
    """
    return _find("lib/libibprof.so")


def find_nccl_profiler() -> Path:
    """Return the path of the profiler plug-in of NCCL and RCCL.

    Raises:
        MissingToolError: the plug-in is not built.
    """
    return _find(f"lib/{NCCL_PROFILER}")


def find_include() -> Path:
    """Return the folder of ibprof.h.

    Raises:
        MissingToolError: the header is not installed.
    """
    return _find("include/ibprof.h").parent


def find_spank_source() -> Path:
    """Return the path of the source of Slurm's plug-in.

    Raises:
        MissingToolError: the source is not installed.
    """
    source = Path(__file__).parents[2] / "csrc" / "spank" / "ibprof_spank.c"
    return source if source.is_file() else _find("spank/ibprof_spank.c")


def find_recording_header() -> Path:
    """Return the path of the header that describes recordings.

    Raises:
        MissingToolError: the header is not installed.
    """
    return _find_header("ibprof_recording.h")


def find_kernels() -> Path:
    """Return the path of libibprof_kernels.so.

    Raises:
        MissingToolError: the library is not built.
    """
    return _find("lib/libibprof_kernels.so")


def find_lines_library() -> Path:
    """Return the path of libibprof_lines.so, which reads debug information.

    Raises:
        MissingToolError: the library is not built.
    """
    return _find("lib/libibprof_lines.so")


def find_otf2_libraries() -> list[str]:
    """Return the paths of OTF2's C library, or names for the dynamic linker, in the order to try.

    ibprof's own library comes first. The extension module of PyPI's package otf2, which exports the same functions, is
    next. Names of the system's library are last.
    """
    shipped = Path(str(files("ibprof").joinpath("lib/libibprof_otf2.so")))
    package = find_spec("_otf2")
    folders = [Path(folder) for folder in (package.submodule_search_locations or () if package else ())]
    found = [shipped, *(path for folder in folders for path in sorted(folder.glob("_otf2*.so")))]
    return [*(str(path) for path in found if path.is_file()), *_SYSTEM_OTF2]


def find_kernels_headers() -> list[Path]:
    """Return the paths of the headers that describe libibprof_kernels.so; included headers come first.

    Raises:
        MissingToolError: a header is not installed.
    """
    includes = _find_header("ibprof_kernels.h").read_text(encoding="utf-8")
    return [_find_header(name) for name in re.findall(r'^#include "(.+)"$', includes, re.MULTILINE)]


def cffi_text(header: Path) -> str:
    """Return the part of a header that cffi can read, between the two marker lines."""
    return header.read_text(encoding="utf-8").partition(_TEXT_BEGINS)[2].partition(_TEXT_ENDS)[0]


def _find_header(name: str) -> Path:
    # Without a build, use the header in csrc, because tools of a checkout import modules that read headers.
    source = Path(__file__).parents[2] / "csrc" / "include" / name
    installed = f"include/{name}"
    return source if source.is_file() and not files("ibprof").joinpath(installed).is_file() else _find(installed)


def _find(name: str) -> Path:
    # Return a path, because loaders and compilers need paths. An installed wheel is unpacked: each file has a path.
    path = Path(str(files("ibprof").joinpath(name)))
    if not path.is_file():
        raise MissingToolError(f"{path} is missing: this ibprof was not built; install it with `pip install .`")
    return path
