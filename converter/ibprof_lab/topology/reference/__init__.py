# SPDX-License-Identifier: Apache-2.0
"""Comparison with a reference topology: cabling, times of links, slow links."""
