# SPDX-License-Identifier: Apache-2.0
"""Synthetic fabrics of known shape, with their tables, for trials, tests and simulations."""
