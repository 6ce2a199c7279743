# SPDX-License-Identifier: Apache-2.0
"""Read a recording (the files that a run writes) as a Profile."""
