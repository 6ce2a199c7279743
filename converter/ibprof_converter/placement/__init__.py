# SPDX-License-Identifier: Apache-2.0
"""Search for rank placements that minimise the largest time of a link direction."""
