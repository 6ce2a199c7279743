# SPDX-License-Identifier: Apache-2.0
"""The packet engine: arrays that describe a fabric, virtual lanes against deadlocks, and the simulation of packets."""
