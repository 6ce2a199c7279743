# SPDX-License-Identifier: Apache-2.0
"""Model of a fabric, and readers of all formats of fabric dumps."""
