# SPDX-License-Identifier: Apache-2.0
"""Start a job so that all its processes get libibprof.so, and the settings of libibprof.so."""
