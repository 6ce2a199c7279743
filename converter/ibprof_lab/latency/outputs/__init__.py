# SPDX-License-Identifier: Apache-2.0
"""Queries on delays; documents, tables and pictures."""
