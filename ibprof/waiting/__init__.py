# SPDX-License-Identifier: Apache-2.0
"""Waiting and transfer inside MPI calls, from calls that all ranks sample; and late ranks."""
