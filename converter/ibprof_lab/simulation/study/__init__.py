# SPDX-License-Identifier: Apache-2.0
"""Sets of simulations: study files and presets, cells, outcomes and tables."""
