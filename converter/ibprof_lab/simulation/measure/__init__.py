# SPDX-License-Identifier: Apache-2.0
"""Latencies of messages in a running simulation: selection of messages, warm-up, and uncertainty of means."""
