#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: a root file (-a) with one of two spines helps updn or ftree to rank the switches. Both spines then have the same rank
#   and carry traffic.
# Seen: all routes between leaves go through the listed spine; the other spine carries nothing. OpenSM logs no warning.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: if a spine is added or replaced, but the root file is not updated, the new spine is idle and other spines carry its load.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
printf '0x200003\n' >one
printf '0x200003\n0x200004\n' >both
for engine_wanted in updn ftree; do
    route -R $engine_wanted -a both
    expect "uplinks, $engine_wanted, both spines listed" "$engine: $(ports_used)" "$engine_wanted: 11 x1, 12 x1, 13 x1, 14 x1"
    route -R $engine_wanted -a one
    expect "uplinks, $engine_wanted, spine1 listed" "$engine: $(ports_used)" "$engine_wanted: 11 x2, 12 x2"
done
