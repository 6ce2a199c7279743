# SPDX-License-Identifier: Apache-2.0
"""The verdict on a job: is the network why it is slow?"""
