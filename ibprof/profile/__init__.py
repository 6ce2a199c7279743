# SPDX-License-Identifier: Apache-2.0
"""The Profile: what one run sent, as arrays, and what follows from it alone."""
