# SPDX-License-Identifier: Apache-2.0
"""A witness for waiting and transfer that shares nothing with ibprof: a tracer of all MPI calls, and their split."""
