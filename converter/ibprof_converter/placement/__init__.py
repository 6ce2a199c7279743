# SPDX-License-Identifier: Apache-2.0
"""Rank placement: where ranks load the links between switches least, on a fabric with its real forwarding tables."""
