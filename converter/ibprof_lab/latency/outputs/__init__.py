# SPDX-License-Identifier: Apache-2.0
"""Queries on delays, and their results as JSON documents, tables and pictures."""
