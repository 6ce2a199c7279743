# SPDX-License-Identifier: Apache-2.0
"""Fabrics, profiles, recordings, traffic and delays for tests, captured or synthetic."""
