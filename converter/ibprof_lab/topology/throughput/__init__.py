# SPDX-License-Identifier: Apache-2.0
"""Measurement of the links' throughput, with pairs of hosts that send at the same time."""
