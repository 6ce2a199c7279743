# SPDX-License-Identifier: Apache-2.0
"""Link loads as CSV, YAML and pictures."""
