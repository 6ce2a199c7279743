#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: OpenSM refuses a root file (-a) that lists leaves instead of spines, or falls back to another engine, as it does if the
#   listed GUIDs do not exist.
# Seen: updn accepts the file, reports "updn tables configured on all switches" and "SUBNET UP", and makes all hosts of other leaves
#   unreachable from each leaf. ftree refuses the same file and falls back to minhop.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: the log of the subnet manager shows no fault, although hosts cannot reach each other. The forwarding tables show the
#   fault.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
printf '0x200000\n0x200001\n0x200002\n' >leaves
route -R updn -a leaves
expect 'engine in use' "$engine" updn
expect 'routes from leaf1 to hosts of other leaves' "$(ports_used)" 'unreachable x4'
expect 'lines with "SUBNET UP"' "$(grep -c 'SUBNET UP' run/opensm.log)" 1
route -R ftree -a leaves
expect 'engine in use for ftree' "$engine" minhop
