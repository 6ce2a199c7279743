# SPDX-License-Identifier: Apache-2.0
"""Inference: the graph of hosts and switches that explains measured delays."""
