# SPDX-License-Identifier: Apache-2.0
"""Simulated subnets (ibsim with OpenSM) and clusters of network namespaces."""
