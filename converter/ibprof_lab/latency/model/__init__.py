# SPDX-License-Identifier: Apache-2.0
"""The delays of messages between processes, in memory."""
