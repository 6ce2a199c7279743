# SPDX-License-Identifier: Apache-2.0
"""Packet simulation of several jobs on one fabric: their interference, and remedies."""
