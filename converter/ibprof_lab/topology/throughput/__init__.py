# SPDX-License-Identifier: Apache-2.0
"""Throughput of links: pairs of hosts that send at the same time, and conclusions from their rates."""
