# SPDX-License-Identifier: Apache-2.0
"""Find the most loaded links, and the senders that load these links."""
