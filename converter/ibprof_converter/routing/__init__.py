# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables, routes by these tables, and link loads of traffic on these routes."""
