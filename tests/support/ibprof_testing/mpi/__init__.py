# SPDX-License-Identifier: Apache-2.0
"""Runs of MPI programs, and the matrices that they must leave."""
