# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables, the routes that they define, and traffic spread over these routes."""
