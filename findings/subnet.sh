# SPDX-License-Identifier: Apache-2.0
# A simulated subnet for the scripts of this folder: Debian 12's OpenSM on ibsim. Sourced after lib.sh.

# 3 leaves with 2 hosts each (ports 1 and 2), 2 spines; each leaf has 2 cables to each spine (ports 11 to 14: spine, spine, spine,
# spine in the order 1, 1, 2, 2). ibsim gives switches the GUIDs 0x200000, 0x200001, ... in the order of this file.
write_fat_tree() {
    for leaf in 1 2 3; do
        printf 'Switch 24 "leaf%s"\n[1] "host%sa"[1]\n[2] "host%sb"[1]\n' $leaf $leaf $leaf
        first=$((2 * leaf - 1))
        printf '[11] "spine1"[%s]\n[12] "spine1"[%s]\n[13] "spine2"[%s]\n[14] "spine2"[%s]\n\n' \
            $first $((first + 1)) $first $((first + 1))
    done
    for spine in 1 2; do
        printf 'Switch 24 "spine%s"\n' $spine
        for leaf in 1 2 3; do
            first=$((9 + 2 * spine))
            printf '[%s] "leaf%s"[%s]\n' $((2 * leaf - 1)) $leaf $first $((2 * leaf)) $leaf $((first + 1))
        done
        printf '\n'
    done
    for leaf in 1 2 3; do
        printf 'Hca 1 "host%sa"\n[1] "leaf%s"[1]\n\nHca 1 "host%sb"\n[1] "leaf%s"[2]\n\n' $leaf $leaf $leaf $leaf
    done
}

# Install OpenSM and ibsim, simulate `fabric.net`, and run OpenSM until the subnet is up.
route() { # OPENSM'S ARGUMENTS
    [ -d debian ] || debian_unpack opensm=3.3.23-2+b1 libopensm9=3.3.23-2+b1 libosmcomp5=3.3.23-2+b1 \
        libosmvendor5=3.3.23-2+b1 ibsim-utils=0.10-2 libumad2sim0=0.10-2 libibumad3=44.0-2 libibmad5=44.0-2 \
        libwrap0=7.6.q-32 libnsl2=1.3.0-2 libtirpc3=1.3.3+ds-1
    rm -rf run && mkdir run
    export IBSIM_SOCKNAME="finding$$" SIM_HOST=host1a OSM_TMP_DIR="$folder/run/" OSM_CACHE_DIR="$folder/run/"
    ibsim -s -n fabric.net >run/ibsim.log 2>&1 &
    simulator=$!
    wait_for run/ibsim.log 'simulator ready'
    LD_PRELOAD=$(find "$folder/debian" -name libumad2sim.so) opensm -f run/opensm.log -e -s 0 -D 0x43 -d 2 -n 32 -t 2000 \
        --dump_files_dir run "$@" >run/opensm.out 2>&1 &
    manager=$!
    wait_for run/opensm.log 'SUBNET UP'
    # They end with the status of a kill, which is no fault.
    kill -9 $manager $simulator
    wait $manager $simulator 2>/dev/null || true
    engine=$(sed -n 's/.*: \([a-z]*\) tables configured on all switches.*/\1/p' run/opensm.log)
}

wait_for() { # FILE TEXT
    for _ in $(seq 600); do
        ! grep -q "$2" "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    printf '%s does not say "%s"\n' "$1" "$2"
    kill -9 $simulator ${manager:-}
    exit 2
}

# Print the ports of leaf1 by which it sends to the hosts of other leaves, with the number of hosts: "11 x2, 12 x2".
ports_used() {
    grep -o '{host[23][ab]} LID:[0-9A-F]*' run/opensm-subnet.lst | sed 's/.*:/0x/' | sort -u >run/hosts
    awk '
        FNR == NR { host[$1] = 1; next }
        /^dump_ucast_routes/ { here = $NF == "0x0000000000200000" }
        here && $1 in host { if ($3 == "UNREACHABLE") none++; else used[$3 + 0]++ }
        END {
            for (port = 1; port <= 24; port++) if (used[port]) text = text (text ? ", " : "") port " x" used[port]
            if (none) text = text (text ? ", " : "") "unreachable x" none
            print text
        }' run/hosts run/opensm.fdbs
}
