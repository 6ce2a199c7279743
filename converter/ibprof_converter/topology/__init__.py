# SPDX-License-Identifier: Apache-2.0
"""Topologies from measured delays: who is linked to whom, by how long messages take between every two hosts."""
