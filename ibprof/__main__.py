# SPDX-License-Identifier: Apache-2.0
"""Make `python -m ibprof` the same as `ibprof`."""

import sys

from ibprof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
