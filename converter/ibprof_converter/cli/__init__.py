# SPDX-License-Identifier: Apache-2.0
"""A main per command: parse, call, print."""
