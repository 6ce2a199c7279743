# SPDX-License-Identifier: Apache-2.0
"""Answers of simulations as text, JSON, charts and pages."""
