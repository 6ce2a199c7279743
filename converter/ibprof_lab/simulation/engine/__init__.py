# SPDX-License-Identifier: Apache-2.0
"""The packet engine: a numbered fabric, its virtual lanes, and the events of every packet."""
