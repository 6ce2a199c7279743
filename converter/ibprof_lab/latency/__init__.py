# SPDX-License-Identifier: Apache-2.0
"""Delays of messages between processes: measurement with mpi4py, storage, and analysis.

`model.delays.Delays` holds the data; `files.delay_files` reads and writes it.
"""
