# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables, routes along these tables, and link loads of traffic on these routes."""
