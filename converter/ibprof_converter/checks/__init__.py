# SPDX-License-Identifier: Apache-2.0
"""Checks of a fabric and its dumps: gaps, links unlike their peers, routes that do not arrive."""
