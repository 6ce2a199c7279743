# SPDX-License-Identifier: Apache-2.0
"""The Profile (the traffic of a run, as arrays), and results that need only a Profile."""
