# SPDX-License-Identifier: Apache-2.0
"""Questions answered by a few simulations: the congestion threshold, and remedies against interference."""
