# SPDX-License-Identifier: Apache-2.0
"""Who sends how much to whom, as pairs of LIDs: from profiles, tables and patterns."""
