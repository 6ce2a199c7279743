# SPDX-License-Identifier: Apache-2.0
"""Measurement of delays and rates with mpi4py."""
