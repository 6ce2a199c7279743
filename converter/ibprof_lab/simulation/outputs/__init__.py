# SPDX-License-Identifier: Apache-2.0
"""Charts of simulations."""
