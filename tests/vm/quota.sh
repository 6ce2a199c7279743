# SPDX-License-Identifier: Apache-2.0
# The command of the guest: MPI programs of a user with a quota on an ext4 file system with much free space.
#
#     quota.sh LIBRARY RANKS MODES (NAME MPIRUN PROGRAM)...
#
# Each program runs twice, and writes NAME-HOW.{out,err,status} and its recording. HOW is `before`: the quota is used up
# at the start; or `meanwhile`: the free quota suffices for a part of the recording.
set -eu
library=$1 ranks=$2 modes=$3
shift 3
left=$PWD/left
user=nobody

own=$(mktemp -d) # the machine's /tmp is seen here, with any name in it
chmod 755 "$own"
mkdir "$left" "$own/disk"
truncate --size 64M "$own/image"
mkfs.ext4 -q -O quota "$own/image"
mount -o loop,usrquota "$own/image" "$own/disk"
mkdir -m 1777 "$own/disk/theirs" "$own/user" # the latter for what launchers write
install -m 755 "$library" "$own/libibprof.so"

as_user() {
    setpriv --reuid=$user --regid=nogroup --clear-groups env HOME="$own/user" TMPDIR="$own/user" "$@"
}

fill() { # FILE: until no more is allowed
    as_user dd if=/dev/zero of="$1" bs=1k count=32k 2>&1 | grep -q 'Disk quota exceeded'
}

run() { # NAME HOW MPIRUN PROGRAM
    status=0
    # shellcheck disable=SC2086  # modes are words
    (cd "$own/user" && as_user "$3" -n "$ranks" env LD_PRELOAD="$own/libibprof.so" IBPROF_OUTPUT="$own/disk/theirs/$1-$2.ibprof" \
        "$4" $modes) >"$left/$1-$2.out" 2>"$left/$1-$2.err" || status=$?
    echo $status >"$left/$1-$2.status"
}

setquota -u $user 0 300 0 0 "$own/disk" # KiB
while [ $# -gt 0 ]; do
    name=$1 mpirun=$2
    install -m 755 "$3" "$own/user/program"
    shift 3
    run "$name" meanwhile "$mpirun" "$own/user/program"
    cp -r "$own/disk/theirs/$name-meanwhile.ibprof" "$left"
    rm -r "$own/disk/theirs/$name-meanwhile.ibprof"
    fill "$own/disk/theirs/more"
    run "$name" before "$mpirun" "$own/user/program"
    rm -rf "$own"/disk/theirs/*
done
df --output=avail -k "$own/disk" | tail -n 1 >"$left/room"
