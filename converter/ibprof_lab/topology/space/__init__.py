# SPDX-License-Identifier: Apache-2.0
"""Positions of vertices in space."""
