# SPDX-License-Identifier: Apache-2.0
"""Waiting and transfer inside MPI calls, from sampled calls; and late ranks."""
