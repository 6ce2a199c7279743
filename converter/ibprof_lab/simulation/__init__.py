# SPDX-License-Identifier: Apache-2.0
"""Packet simulation of jobs that share a fabric: how the jobs slow each other down, and remedies."""
