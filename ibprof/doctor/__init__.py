# SPDX-License-Identifier: Apache-2.0
"""Whether a job would be recorded here, before one is wasted."""
