# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests: samples of data, reference implementations, labs, and runs of MPI programs."""
