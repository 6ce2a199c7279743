# SPDX-License-Identifier: Apache-2.0
"""The Profile (the traffic of one run, as arrays) and results that need no other data."""
