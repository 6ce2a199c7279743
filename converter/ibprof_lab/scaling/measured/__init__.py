# SPDX-License-Identifier: Apache-2.0
"""Prediction of run times from measured delays, recorded calls, and the fabric's forwarding tables."""
