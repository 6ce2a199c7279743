# SPDX-License-Identifier: Apache-2.0
"""Studies, which are sets of simulations: study files and presets, cells (single simulations), outcomes and tables."""
