# SPDX-License-Identifier: Apache-2.0
"""Whether a fabric's dumps are whole, and whether the fabric is: gaps, and links that are not like their kin."""
