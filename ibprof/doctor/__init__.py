# SPDX-License-Identifier: Apache-2.0
"""Check whether this machine would record a job, before the job runs."""
