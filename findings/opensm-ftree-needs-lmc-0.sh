#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: ftree routes a regular fat tree whatever the LMC is; multipath is what LMC is for.
# Seen: with LMC 1 ftree gives up and OpenSM takes minhop, on the same regular fabric that ftree routes with LMC 0. The subnet is
#   reported up; the engine in use stands in the log alone.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: opensm.conf says ftree and the fabric runs minhop; a tool must read the log or the tables, not the configuration.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
route -R ftree
expect 'engine in use, LMC 0' "$engine" ftree
route -R ftree -l 1
expect 'engine in use, LMC 1' "$engine" minhop
