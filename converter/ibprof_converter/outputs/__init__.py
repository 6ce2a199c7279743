# SPDX-License-Identifier: Apache-2.0
"""Write link loads as CSV, YAML and pictures."""
