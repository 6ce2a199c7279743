# SPDX-License-Identifier: Apache-2.0
"""Questions that a few simulations answer: congestion threshold, remedies against interference, replay of a run."""
