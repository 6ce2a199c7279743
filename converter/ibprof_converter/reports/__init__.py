# SPDX-License-Identifier: Apache-2.0
"""Reports on a job, and comparisons of two jobs: as text, JSON or HTML page."""
