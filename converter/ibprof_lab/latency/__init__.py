# SPDX-License-Identifier: Apache-2.0
"""Delays of messages between processes: measured with mpi4py, kept, read and analysed.

`model.delays.Delays` is the data; `files.delay_files` reads and writes it.
"""
