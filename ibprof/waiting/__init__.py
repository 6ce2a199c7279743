# SPDX-License-Identifier: Apache-2.0
"""Waiting and transfer inside MPI calls, split by sampled calls of all ranks; and which ranks were late."""
