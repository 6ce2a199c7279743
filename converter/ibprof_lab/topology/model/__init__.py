# SPDX-License-Identifier: Apache-2.0
"""The inferred topology: hosts, switches and edges, the attachment of hosts to switches, and routes."""
