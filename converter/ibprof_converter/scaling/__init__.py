# SPDX-License-Identifier: Apache-2.0
"""How many processes are worth it: the analytic model of Kredel et al., and its parameters from recordings."""
