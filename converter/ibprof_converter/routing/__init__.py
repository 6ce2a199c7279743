# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables, the routes they make, and traffic spread over them."""
