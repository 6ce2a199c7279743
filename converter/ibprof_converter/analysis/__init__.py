# SPDX-License-Identifier: Apache-2.0
"""The pipeline from fabrics and traffic to link loads, views and placements."""
