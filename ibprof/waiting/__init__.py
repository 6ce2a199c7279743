# SPDX-License-Identifier: Apache-2.0
"""Measure waiting and transfer inside MPI calls from sampled calls, and find late ranks."""
