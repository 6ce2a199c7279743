# SPDX-License-Identifier: Apache-2.0
"""Write the declarations of a C header, or of the headers that it includes, as a Python module for cffi.

python make_interface.py OUT HEADER
"""

import re
import sys
from pathlib import Path

from cffi import FFI


def main() -> None:
    """Write the module."""
    out, header = map(Path, sys.argv[1:])
    included = re.findall(r'^#include "(.+)"$', header.read_text(encoding="utf-8"), re.MULTILINE)
    ffi = FFI()
    for name in included or [header.name]:
        text = (header.parent / name).read_text(encoding="utf-8")
        ffi.cdef(text.partition("/* -- cffi begins -- */")[2].partition("/* -- cffi ends -- */")[0])
    ffi.set_source(f"ibprof.lib.{out.stem}", None)
    ffi.emit_python_code(str(out))
    out.write_text("# SPDX-License-Identifier: Apache-2.0\n" + out.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
