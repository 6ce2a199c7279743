# SPDX-License-Identifier: Apache-2.0
"""`python -m ibprof` is `ibprof`."""

import sys

from ibprof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
