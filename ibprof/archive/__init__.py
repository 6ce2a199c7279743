# SPDX-License-Identifier: Apache-2.0
"""Write and read a Profile as an OTF2 archive."""
