# SPDX-License-Identifier: Apache-2.0
"""Results of simulations as text, JSON, charts and web pages."""
