# SPDX-License-Identifier: Apache-2.0
"""Check whether a job would be recorded here, before one is wasted."""
