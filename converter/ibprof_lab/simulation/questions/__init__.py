# SPDX-License-Identifier: Apache-2.0
"""Questions that a few simulations answer: congestion threshold, remedies against interference, time of a replayed
run."""
