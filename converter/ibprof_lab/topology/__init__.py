# SPDX-License-Identifier: Apache-2.0
"""Topologies inferred from measured delays, and what is done with them."""
