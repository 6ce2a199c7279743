# SPDX-License-Identifier: Apache-2.0
"""Fabrics of known shape, with their tables: for trials, tests and simulations."""
