# SPDX-License-Identifier: Apache-2.0
"""Reports on a job, and on two jobs compared: one model each, shown as text, as JSON and as an HTML page."""
