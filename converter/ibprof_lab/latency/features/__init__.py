# SPDX-License-Identifier: Apache-2.0
"""Features of delays: peaks, steps, clusters of pairs, outlying processes, changes."""
