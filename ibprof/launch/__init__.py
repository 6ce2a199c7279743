# SPDX-License-Identifier: Apache-2.0
"""Start a job whose processes all get libibprof.so and its settings."""
