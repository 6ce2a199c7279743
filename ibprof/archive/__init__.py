# SPDX-License-Identifier: Apache-2.0
"""A Profile as an OTF2 archive: written, and read back."""
