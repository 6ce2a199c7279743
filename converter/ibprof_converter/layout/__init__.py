# SPDX-License-Identifier: Apache-2.0
"""Levels and positions of the nodes of a fabric."""
