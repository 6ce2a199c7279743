# SPDX-License-Identifier: Apache-2.0
"""Which links carry most, and who loads them."""
