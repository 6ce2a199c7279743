# SPDX-License-Identifier: Apache-2.0
"""The `main` functions of the commands. These functions parse arguments, call other modules and print results."""
