# SPDX-License-Identifier: Apache-2.0
"""Slow, plain implementations in Python of the C kernels, which tests compare the kernels with."""
