# SPDX-License-Identifier: Apache-2.0
"""Latencies of a running simulation: what is kept, what is left out, how sure a mean is."""
