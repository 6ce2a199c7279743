# SPDX-License-Identifier: Apache-2.0
"""The inferred topology: hosts, switches and edges; where hosts attach, and which links a message takes."""
