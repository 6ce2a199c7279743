# SPDX-License-Identifier: Apache-2.0
"""Topologies inferred from measured delays: inference, comparison, throughput, outputs."""
