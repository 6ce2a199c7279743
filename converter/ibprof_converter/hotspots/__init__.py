# SPDX-License-Identifier: Apache-2.0
"""The links that carry most, and the senders that load them."""
