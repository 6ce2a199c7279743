# SPDX-License-Identifier: Apache-2.0
"""Rank placement: search for the hosts that minimise the largest time of a link direction."""
