# SPDX-License-Identifier: Apache-2.0
"""The most loaded links, and the senders that load them."""
