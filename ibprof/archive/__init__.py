# SPDX-License-Identifier: Apache-2.0
"""Write a Profile as an OTF2 archive, and read it."""
