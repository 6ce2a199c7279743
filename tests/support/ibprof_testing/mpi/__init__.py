# SPDX-License-Identifier: Apache-2.0
"""Run MPI programs, and compute the traffic matrices that ibprof must record."""
