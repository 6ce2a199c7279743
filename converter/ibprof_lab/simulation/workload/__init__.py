# SPDX-License-Identifier: Apache-2.0
"""Jobs as messages between hosts (patterns, collectives, recorded and traced runs), and the choice of hosts."""
