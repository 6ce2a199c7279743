# SPDX-License-Identifier: Apache-2.0
"""Delays of messages between processes: measured with mpi4py, kept, read, looked at.

`delays.Delays` is the model that all else works on; `files.read_delays` and `files.write_delays` are the way from and
to disk.
"""
