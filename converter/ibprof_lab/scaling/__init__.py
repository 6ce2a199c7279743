# SPDX-License-Identifier: Apache-2.0
"""The analytic model of Kredel et al. for the number of processes that still pays off, with recorded parameters."""
