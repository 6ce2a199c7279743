# SPDX-License-Identifier: Apache-2.0
"""The `main` functions of commands parse arguments, call other modules and print results."""
