# SPDX-License-Identifier: Apache-2.0
"""Slow, plain Python implementations of the C kernels. Tests compare the kernels with these implementations."""
