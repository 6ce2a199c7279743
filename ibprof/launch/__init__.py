# SPDX-License-Identifier: Apache-2.0
"""Start a job so that libibprof.so and its settings reach every process of it."""
