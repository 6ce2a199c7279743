# SPDX-License-Identifier: Apache-2.0
"""Jobs as messages between hosts: patterns, collectives, recorded runs, and their hosts."""
