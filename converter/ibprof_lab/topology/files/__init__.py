# SPDX-License-Identifier: Apache-2.0
"""Topologies from files: JSON, Trivial Graph Format, DOT."""
