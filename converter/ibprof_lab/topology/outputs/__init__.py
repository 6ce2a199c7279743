# SPDX-License-Identifier: Apache-2.0
"""Inferred and compared topologies as text, tables, graphs and pages."""
