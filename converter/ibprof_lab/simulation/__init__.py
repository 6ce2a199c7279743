# SPDX-License-Identifier: Apache-2.0
"""Packets of several jobs on one fabric: how they disturb each other, and what helps."""
