#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: ftree routes a regular fat tree with any LMC, because LMC exists for multipath routing.
# Seen: with LMC 1, ftree fails and OpenSM uses minhop, on the same regular fabric that ftree routes with LMC 0. OpenSM reports the
#   subnet as up. Only the log names the engine in use.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: opensm.conf names ftree, but the fabric uses minhop. A tool must read the log or the tables, not the configuration.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
route -R ftree
expect 'engine in use, LMC 0' "$engine" ftree
route -R ftree -l 1
expect 'engine in use, LMC 1' "$engine" minhop
