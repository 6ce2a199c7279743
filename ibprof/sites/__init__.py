# SPDX-License-Identifier: Apache-2.0
"""Source lines and names of call sites, from addresses in programs and libraries."""
