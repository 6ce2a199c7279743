#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a CPython interpreter of each version whose frames ibprof can read, without installing it:
#
#     scripts/pythons.sh FOLDER
#
# PyPI's packages for freezing programs (cx_Freeze, freeze-core) contain an interpreter as one executable, which runs
# lib/__startup__.py. Here this file runs the program in the first argument. The few modules of the standard library
# that CPython needs to start come from this machine's Python. FOLDER/3.14t/python is 3.14 without the interpreter's lock.
set -eu

folder=$1
python=${PYTHON:-python3}
if [ -e "$folder/ready" ]; then exit 0; fi

download() { # VERSION PACKAGE: downloads the package's build for this machine
    minor=${1%t}
    "$python" -m pip download --quiet --no-deps --dest "$folder/$1" --only-binary :all: --implementation cp \
        --platform "manylinux2014_$(uname -m)" --python-version "$minor" --abi "cp$(echo "$1" | tr -d .)" "$2"
}

unpack() { # VERSION: unpacks the files of the package that the interpreter needs
    "$python" - "$folder/$1" <<'PROGRAM'
import codecs, encodings, pathlib, shutil, sys, zipfile

folder = pathlib.Path(sys.argv[1])
bases = folder / "package" / "bases"
library = bases / "lib"
(library / "encodings").mkdir(parents=True)
for wheel in folder.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            *parents, file = pathlib.PurePath(name).parts
            if file.startswith("console-") and parents[-1] == "bases":
                (bases / "python").write_bytes(archive.read(name))
                (bases / "python").chmod(0o755)
            elif file.startswith(("_ctypes.", "unicodedata.")):
                (library / file).write_bytes(archive.read(name))
            elif parents and parents[0].endswith(".libs") and file.startswith(("libffi", "libcrypt-")):
                # The executable and _ctypes search these libraries two folders up.
                for top in (folder, folder / "package"):
                    (top / parents[0]).mkdir(exist_ok=True)
                    (top / parents[0] / file).write_bytes(archive.read(name))
    wheel.unlink()
for name in ("__init__", "aliases", "ascii", "latin_1", "utf_8"):
    shutil.copy(pathlib.Path(encodings.__file__).with_name(f"{name}.py"), library / "encodings")
shutil.copy(codecs.__file__, library)
(library / "io.py").write_text("from _io import *\nOpenWrapper = open\n")
start = """from sys import argv, modules
def init(): pass
def run(name=None):
    del argv[0]
    main = modules["__main__"] = type(modules["sys"])("__main__")
    with open(argv[0], encoding="utf-8") as program:
        exec(compile(program.read(), argv[0], "exec"), main.__dict__)
"""
for name in ("__startup__", "__init__python"):
    (library / f"{name}.py").write_text(start)
(folder / "python").symlink_to("package/bases/python")
PROGRAM
}

rm -rf "$folder"
mkdir -p "$folder"
download 3.9 cx-Freeze==8.4.1
for version in 3.10 3.11 3.12 3.13 3.13t 3.14 3.14t; do download $version freeze-core==0.6.1; done
download 3.15 freeze-core==0.8.1
for version in "$folder"/3.*; do unpack "$(basename "$version")"; done
touch "$folder/ready"
