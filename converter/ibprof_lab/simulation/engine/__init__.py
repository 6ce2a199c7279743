# SPDX-License-Identifier: Apache-2.0
"""The packet engine: a fabric as arrays of hosts, switches and ports, its virtual lanes, and the events of packets."""
