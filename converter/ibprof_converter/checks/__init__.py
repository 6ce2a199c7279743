# SPDX-License-Identifier: Apache-2.0
"""Check a fabric and its dumps: missing data, links that differ from similar links, routes that do not arrive."""
