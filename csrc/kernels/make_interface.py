# SPDX-License-Identifier: Apache-2.0
"""Write the headers of libibprof_kernels.so as a Python module that cffi loads without parsing them.

python make_interface.py HEADER OUT

HEADER is ibprof_kernels.h, which includes the others.
"""

import re
import sys
from pathlib import Path

from cffi import FFI


def main() -> None:
    """Write the module."""
    header, out = map(Path, sys.argv[1:])
    ffi = FFI()
    for name in re.findall(r'^#include "(.+)"$', header.read_text(encoding="utf-8"), re.MULTILINE):
        text = (header.parent / name).read_text(encoding="utf-8")
        ffi.cdef(text.partition("/* -- cffi begins -- */")[2].partition("/* -- cffi ends -- */")[0])
    ffi.set_source(f"ibprof.lib.{out.stem}", None)
    ffi.emit_python_code(str(out))
    out.write_text("# SPDX-License-Identifier: Apache-2.0\n" + out.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
