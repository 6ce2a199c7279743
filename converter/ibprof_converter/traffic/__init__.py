# SPDX-License-Identifier: Apache-2.0
"""Traffic from LID to LID: read from profiles, tables and patterns."""
