# SPDX-License-Identifier: Apache-2.0
"""Comparison of a measured topology with a reference: cabling, times of links, slow links."""
