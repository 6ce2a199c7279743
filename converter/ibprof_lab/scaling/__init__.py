# SPDX-License-Identifier: Apache-2.0
"""The analytic scaling model of Kredel et al., with parameters from recorded runs."""
