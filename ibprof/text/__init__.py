# SPDX-License-Identifier: Apache-2.0
"""Quantities, names and tables as people and programs read them."""
