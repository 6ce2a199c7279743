# SPDX-License-Identifier: Apache-2.0
"""A reference for waiting and transfer times: a tracer of all MPI calls. The tracer shares no code with ibprof."""
