# SPDX-License-Identifier: Apache-2.0
"""The Fabric model, and a reader for each format of fabric dumps."""
