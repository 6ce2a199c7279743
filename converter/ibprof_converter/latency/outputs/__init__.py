# SPDX-License-Identifier: Apache-2.0
"""Delays as documents and pictures."""
