# SPDX-License-Identifier: Apache-2.0
"""Diagnose hot links: apply each candidate remedy to the model and report its effect."""
