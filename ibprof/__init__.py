# SPDX-License-Identifier: Apache-2.0
"""ibprof: which network links does an MPI job load, who loads them, and what should be changed?"""

from ibprof.region import mark, off, on, region

__all__ = ["__version__", "mark", "off", "on", "region"]

__version__ = "0.1.0"
