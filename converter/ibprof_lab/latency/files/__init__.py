# SPDX-License-Identifier: Apache-2.0
"""Files of delays and of pairs of processes."""
