# SPDX-License-Identifier: Apache-2.0
"""Format quantities, names and tables as text for people and programs."""
