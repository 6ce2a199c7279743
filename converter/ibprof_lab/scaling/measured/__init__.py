# SPDX-License-Identifier: Apache-2.0
"""Run times predicted from measured delays, recorded calls, and the fabric's own tables."""
