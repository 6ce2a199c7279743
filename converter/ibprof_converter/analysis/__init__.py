# SPDX-License-Identifier: Apache-2.0
"""The one pipeline from fabrics and traffic to link loads, views and placements: options in, results out."""
