# SPDX-License-Identifier: Apache-2.0
"""Find source lines and names of call sites, from addresses in programs and libraries."""
