# SPDX-License-Identifier: Apache-2.0
"""The analytic model of Kredel et al. for the worthwhile number of processes, with parameters from recordings."""
