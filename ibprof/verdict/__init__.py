# SPDX-License-Identifier: Apache-2.0
"""The verdict on a job: whether the network makes it slow."""
