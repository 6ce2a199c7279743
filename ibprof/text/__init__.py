# SPDX-License-Identifier: Apache-2.0
"""Quantities, names and tables as text for people and programs."""
