# SPDX-License-Identifier: Apache-2.0
"""Generate synthetic fabrics with known shapes, and their tables, for trials, tests and simulations."""
