# SPDX-License-Identifier: Apache-2.0
"""Questions that a few simulations answer: the congestion threshold, and what helps against interference."""
