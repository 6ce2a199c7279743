# SPDX-License-Identifier: Apache-2.0
"""Read traffic from profiles, tables and patterns, and map it to LIDs and links."""
