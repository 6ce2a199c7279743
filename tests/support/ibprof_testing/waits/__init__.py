# SPDX-License-Identifier: Apache-2.0
"""A reference for waiting and transfer times: a tracer of all MPI calls. It shares no code with ibprof."""
