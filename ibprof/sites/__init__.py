# SPDX-License-Identifier: Apache-2.0
"""Source lines and names of places in programs, from addresses in programs and libraries."""
