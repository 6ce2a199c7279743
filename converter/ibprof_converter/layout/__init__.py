# SPDX-License-Identifier: Apache-2.0
"""Find levels and positions of a fabric's nodes."""
