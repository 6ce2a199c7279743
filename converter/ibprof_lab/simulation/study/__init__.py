# SPDX-License-Identifier: Apache-2.0
"""Sets of simulations: from a file or a preset to cells, outcomes and tables."""
