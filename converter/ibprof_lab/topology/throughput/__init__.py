# SPDX-License-Identifier: Apache-2.0
"""Throughput of links: which pairs of hosts send at the same time, and what their rates show."""
