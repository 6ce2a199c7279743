# SPDX-License-Identifier: Apache-2.0
"""Start a job so that libibprof.so and its settings reach all its processes."""
