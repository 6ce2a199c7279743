# SPDX-License-Identifier: Apache-2.0
# The command of the guest, which runs all cases. Each case writes CASE.ibprof, CASE.out, and the bytes that the wires
# had carried before (CASE.before) and after the case (CASE.after).
#
#     cases.sh LIBRARY TRAFFIC STRIPE RAILS BCAST [full]      RAILS: examples/rails/measured.sh, which runs BCAST
set -eu
library=$1 traffic=$2 stripe=$3 rails_script=$4 bcast=$5 kind=${6:-}
here=$PWD

# In this folder, files can be mapped and shared. The machine's folder is on a network file system.
cd "$(mktemp -d)" # the machine's /tmp is seen here, with any name in it

wires() { # the bytes that each end of each wire has sent
    for end in 0a 0b 1a 1b; do printf '%s %s\n' $end "$(cat /sys/class/net/eth$end/statistics/tx_bytes)"; done
}

case_of() { # CASE COMMAND...
    name=$1
    shift
    wires >"$name.before"
    status=0
    IBPROF_OUTPUT=$PWD/$name.ibprof "$@" >"$name.out" 2>"$name.err" || status=$?
    echo $status >"$name.status"
    wires >"$name.after"
}

preloaded() { LD_PRELOAD=$library "$@"; }

# Two ranks, the first with a's adapters and the second with b's. UCX replaces Open MPI's own transports.
ranks() { # TRANSPORTS DEVICES-OF-A DEVICES-OF-B COMMAND...
    transports=$1 a=$2 b=$3
    shift 3
    UCX_TLS=$transports,self UCX_MAX_RNDV_RAILS=2 mpirun --oversubscribe --bind-to none --mca pml ucx --mca osc ucx \
        -x LD_PRELOAD="$library" -x UCX_NET_DEVICES="$a" -n 1 "$@" : \
        -x LD_PRELOAD="$library" -x UCX_NET_DEVICES="$b" -n 1 "$@"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_WARN_UNUSED_ENV_VARS=n
# The GID 1 of soft-RoCE is its IPv4 address. Soft-RoCE does not report the kind of a datagram's packet.
export UCX_IB_GID_INDEX=1 UCX_UD_VERBS_ETH_DGID_CHECK=n

for mode in plain built datagrams shared; do case_of $mode preloaded "$traffic" rail0a rail0b $mode; done
case_of other_rail preloaded "$traffic" rail1b rail1a plain
case_of two_rails ranks rc_verbs,ud_verbs rail0a:1,rail1a:1 rail0b:1,rail1b:1 "$stripe" 4 5000000
case_of ud_one_rail ranks ud_verbs rail0a:1 rail0b:1 "$stripe" 5 100000
if [ -n "$kind" ]; then
    case_of one_rail ranks rc_verbs,ud_verbs rail0a:1 rail0b:1 "$stripe" 5 1000000
    case_of small ranks rc_verbs,ud_verbs rail0a:1 rail0b:1 "$stripe" 50 1000
    case_of ud_two_rails ranks ud_verbs rail0a:1,rail1a:1 rail0b:1,rail1b:1 "$stripe" 5 500000
    case_of many ranks rc_verbs,ud_verbs rail0a:1,rail1a:1 rail0b:1,rail1b:1 "$stripe" 40 3000000
fi
# Two adapters of a and two of b in one subnet: four ports of one bridge.
# Packets cross the bridge's queue twice. The queue must not drop a packet, because ports would count the resent packet.
echo 30000 >/proc/sys/net/core/netdev_max_backlog
ip link add one type bridge
ip link set one up
number=1
for port in 0a 1a 0b 1b; do
    ip link add net$port address 02:00:00:00:09:0$number mtu 4500 type veth peer name br$port mtu 4500
    ip link set br$port master one up
    ip link set net$port up
    ip addr add 10.0.9.$number/24 dev net$port noprefixroute
    number=$((number + 1))
done
for port in 0a 1a 0b 1b; do
    for number in 1 2 3 4; do
        ip neigh replace 10.0.9.$number lladdr 02:00:00:00:09:0$number dev net$port nud permanent
    done
    rdma link add one$port type rxe netdev net$port
done
for port in 0a 1a 0b 1b; do
    until grep -q ffff:0a00 /sys/class/infiniband/one$port/ports/1/gids/1 2>/dev/null; do sleep 0.1; done
done
wires() { for port in 0a 1a 0b 1b; do printf '%s %s\n' $port "$(cat /sys/class/net/net$port/statistics/tx_bytes)"; done; }
case_of across ranks rc_verbs,ud_verbs one1a:1 one0b:1 "$stripe" 5 1000000
case_of both_in_one ranks rc_verbs,ud_verbs one0a:1,one1a:1 one0b:1,one1b:1 "$stripe" 10 400000
bash "$rails_script" "$library" "$bcast" 1000000
cp -r . "$here/recorded"
