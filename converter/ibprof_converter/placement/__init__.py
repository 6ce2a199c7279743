# SPDX-License-Identifier: Apache-2.0
"""Rank placement: search for the least load on links between switches, with the fabric's forwarding tables."""
