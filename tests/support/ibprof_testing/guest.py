# SPDX-License-Identifier: Apache-2.0
"""A virtual machine (the guest) with real verbs, on two rails of soft-RoCE. The guest runs one command.

    python -m ibprof_testing.guest [--folder DIR] [--seconds N] -- COMMAND [ARGUMENT...]

The command sees this machine's files. Only changes to DIR are kept. The guest has four devices, as if a and b were two
hosts with two adapters each. A wire connects rail0a and rail0b. Another wire connects rail1a and rail1b. The GID at
index 1 of a device is 10.0.RAIL.1 for a, and 10.0.RAIL.2 for b. The network interface of rail0a is eth0a, and so on.

The kernel is a Debian package that scripts/guest-kernel.sh unpacks; nothing is installed. Without /dev/kvm, qemu
interprets the guest. The user needs no rights but to read the command's files.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof_testing.machine import MissingError, find_program
from ibprof_testing.paths import ROOT

MODULES = (
    *("virtio_pci", "9pnet_virtio", "9p", "overlay"),
    *("crc32c_generic", "crc32_generic", "veth", "ib_uverbs", "rdma_ucm", "rdma_rxe"),
)
"""Kernel modules to load, unless they are built into the kernel."""

_MEGABYTES = 2048
_PROCESSORS = 1
"""Number of the guest's processors. Two processors would mostly wait for changes of each other's page tables."""
_KERNEL_LINE = " ".join(
    (
        *("console=ttyS0", "quiet", "panic=-1", "mitigations=off", "random.trust_cpu=on", "rdinit=/init"),
        # On a busy machine, an interpreted timer is so late that the kernel panics.
        "no_timer_check",
        # Less work for qemu: the kernel does not clear allocated pages, and does not compare clocks.
        *("init_on_alloc=0", "tsc=reliable"),
    )
)
_SHARE_OPTIONS = "trans=virtio,version=9p2000.L,msize=512000"

# Process 1 loads modules, and makes its root an overlay in memory over this machine's files.
_INIT = f"""#!/bin/busybox sh
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in $(busybox cat /modules/order); do busybox insmod /modules/$module; done
busybox mount -t 9p -o ro,cache=loose,{_SHARE_OPTIONS} machine /below
busybox mount -t tmpfs -o size=60% memory /memory
busybox mkdir /memory/upper /memory/work
busybox mount -t overlay -o lowerdir=/below,upperdir=/memory/upper,workdir=/memory/work overlay /root
busybox mkdir -p /root/run /root/tmp "/root$(busybox cat /where)"
busybox mount -t 9p -o rw,cache=none,{_SHARE_OPTIONS} folder "/root$(busybox cat /where)"
for folder in proc sys dev; do busybox mount -o move /$folder /root/$folder; done
exec busybox switch_root /root /bin/bash "$(busybox cat /where)/guest/setup"
"""

# The two wires. One kernel owns all ends of the wires. By default, the kernel sends itself packets without a wire.
_SETUP = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
here=$1
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts devpts /dev/pts
ln -sf /proc/self/fd /dev/fd
ln -sf fd/0 /dev/stdin; ln -sf fd/1 /dev/stdout; ln -sf fd/2 /dev/stderr
date -u -s "@$NOW" >/dev/null
hostname node-a
echo "127.0.0.1 localhost node-a" >/etc/hosts
ip link set lo up
for scope in all default; do
    for setting in accept_local=1 rp_filter=0 arp_ignore=1 arp_announce=2; do
        echo "${setting#*=}" >"/proc/sys/net/ipv4/conf/$scope/${setting%=*}"
    done
done
for rail in 0 1; do
    ip link add eth${rail}a address 02:00:00:00:0$rail:0a mtu 4500 type veth \\
        peer name eth${rail}b address 02:00:00:00:0$rail:0b mtu 4500
    for end in a:1:b:2 b:2:a:1; do
        IFS=: read -r own address other its <<<"$end"
        ip link set eth$rail$own up
        ip addr add 10.0.$rail.$address/24 dev eth$rail$own noprefixroute
        ip neigh add 10.0.$rail.$its lladdr 02:00:00:00:0$rail:0$other dev eth$rail$own nud permanent
        rdma link add rail$rail$own type rxe netdev eth$rail$own
    done
done
for device in rail0a rail0b rail1a rail1b; do
    until grep -q ffff:0a00 /sys/class/infiniband/$device/ports/1/gids/1 2>/dev/null; do sleep 0.1; done
done
ulimit -l unlimited
"""


class GuestError(RuntimeError):
    """The guest could not be created, did not start, or did not end in time."""


@dataclass(frozen=True, slots=True)
class Done:
    """Exit status and output of a command.

    Attributes:
        seconds: time from the start of the guest to its end.
    """

    status: int
    stdout: str
    stderr: str
    seconds: float


def run_in_guest(command: Sequence[str], folder: Path, seconds: float = 600, modules: Sequence[str] = ()) -> Done:
    """Run a command in a guest.

    Args:
        folder: working folder of the command, and its only writable folder. If `folder` contains a folder `share`, the
            command can mount `share` again with other options. The 9P tag is `share`.
        seconds: time limit of the guest.
        modules: additional kernel modules.

    Raises:
        GuestError: the guest could not be created, did not start, or did not end in time.
    """
    folder = folder.resolve()
    if "," in str(folder):
        raise GuestError(f"{folder}: a folder that is shared with a guest has no comma in its name")
    kernel, module_folder = _find_kernel()
    begun = time.monotonic()
    talk = folder / "guest"
    shutil.rmtree(talk, ignore_errors=True)
    talk.mkdir(parents=True)
    setup = f"cd {shlex.quote(str(folder))}\nNOW={int(time.time())}\n{_SETUP}"
    ending = "echo b >/proc/sysrq-trigger; sleep 60\n"
    line = f"cd {shlex.quote(str(folder))}; {shlex.join(command)} </dev/null >guest/stdout 2>guest/stderr"
    (talk / "setup").write_text(
        f"{setup}\n( {line} )\necho $? >guest/status.new\nmv guest/status.new guest/status\nsync\n{ending}"
    )
    with tempfile.TemporaryDirectory(prefix="ibprof-guest-") as scratch:
        image = Path(scratch) / "initramfs"
        image.write_bytes(_make_initramfs(folder, module_folder, [*MODULES, *modules]))
        _run_machine(kernel, image, folder, seconds)
    status = talk / "status"
    if not status.exists():
        console = (talk / "console").read_text(errors="replace")
        raise GuestError(f"the guest ended without running its command; its console:\n{console[-4000:]}")
    return Done(
        status=int(status.read_text()),
        stdout=(talk / "stdout").read_text(errors="replace"),
        stderr=(talk / "stderr").read_text(errors="replace"),
        seconds=time.monotonic() - begun,
    )


def _find_kernel() -> tuple[Path, Path]:
    """Return the newest kernel that has soft-RoCE, and the folder of its modules."""
    root = Path(os.environ.get("IBPROF_GUEST_KERNEL", ROOT / ".guest-kernel"))
    for kernel in sorted(root.glob("boot/vmlinuz-*"), reverse=True):
        version = kernel.name.removeprefix("vmlinuz-")
        for modules in (root / "lib/modules" / version, root / "usr/lib/modules" / version):
            if any(modules.glob("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*")):
                return kernel, modules
    raise GuestError(f"no kernel with soft-RoCE in {root}: run scripts/guest-kernel.sh {root}, as `make test` does")


def _run_machine(kernel: Path, image: Path, folder: Path, seconds: float) -> None:
    program = find_program("qemu-system-x86_64", package="qemu-system-x86")
    share = "local,security_model=none,multidevs=remap,path={},mount_tag={}{}"
    machine = subprocess.Popen(
        [
            # The guest ends with this process, even if this process is killed.
            *(find_program("setpriv", package="util-linux"), "--pdeathsig", "KILL"),
            program,
            *("-accel", "tcg,thread=multi", "-cpu", "max", "-machine", "pc"),
            *("-smp", str(_PROCESSORS), "-m", str(_MEGABYTES)),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"),
            *("-kernel", str(kernel), "-initrd", str(image)),
            *("-append", _KERNEL_LINE),
            *("-serial", f"file:{folder / 'guest/console'}"),
            *("-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"),
            *("-virtfs", share.format("/", "machine", ",readonly=on")),
            *("-virtfs", share.format(folder, "folder", "")),
            *(("-virtfs", share.format(folder / "share", "share", "")) if (folder / "share").is_dir() else ()),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, said = machine.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise GuestError(f"the guest did not end within {seconds:g} s: {_last_words(folder)}") from error
    finally:
        machine.kill()
        machine.wait()
    if machine.returncode:
        raise GuestError(f"{program} ended with status {machine.returncode}: {said.decode(errors='replace')}")


def _last_words(folder: Path) -> str:
    talk = folder / "guest"
    said = [
        (talk / name).read_text(errors="replace")[-2000:]
        for name in ("console", "stdout", "stderr")
        if (talk / name).exists()
    ]
    return "\n".join(said)


# -- the first files of the guest: busybox, modules, and process 1 -----------------------------------------------------


def _make_initramfs(folder: Path, module_folder: Path, wanted: Sequence[str]) -> bytes:
    order = []
    files: list[tuple[str, int, bytes]] = [(name, 0o40755, b"") for name in _FOLDERS]
    busybox = Path(find_program("busybox", package="busybox-static")).read_bytes()
    files += [
        ("bin/busybox", 0o100755, busybox),
        ("init", 0o100755, _INIT.encode()),
        ("where", 0o100644, str(folder).encode()),
    ]
    for name, content in _load_order(module_folder, wanted):
        order.append(f"{name}.ko")
        files.append((f"modules/{name}.ko", 0o100644, content))
    files.append(("modules/order", 0o100644, "\n".join(order).encode()))
    return _pack(files)


_FOLDERS = ("bin", "modules", "proc", "sys", "dev", "below", "memory", "root")


def _load_order(folder: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the required modules, each after the modules that it depends on."""
    paths = {path.name.partition(".ko")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    placed: set[str] = set()

    def place(name: str) -> Iterator[tuple[str, bytes]]:
        if name in placed or name not in paths:
            return
        placed.add(name)
        content = _unpack(paths[name])
        found = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in found[1].decode().split(",") if found and found[1] else ():
            yield from place(other.replace("-", "_"))
        yield name, content

    for name in wanted:
        yield from place(name.replace("-", "_"))


def _unpack(path: Path) -> bytes:
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(
            [find_program("zstd", package="zstd"), "-dcq", path], capture_output=True, check=True
        ).stdout
    return path.read_bytes()


def _pack(files: Sequence[tuple[str, int, bytes]]) -> bytes:
    """Write a cpio archive in the kernel's format.

    Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst
    """
    parts = []
    for number, (name, mode, content) in enumerate([*files, ("TRAILER!!!", 0, b"")]):
        fields = (number + 1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]
    return b"".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a command in a guest that has two rails of soft-RoCE.")
    parser.add_argument("--folder", type=Path, default=Path(), help="folder that the command can write to (default: .)")
    parser.add_argument("--seconds", type=float, default=600, help="time limit of the guest, in seconds")
    parser.add_argument("command", nargs="+")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that temporary files are removed
    try:
        done = run_in_guest(wanted.command, wanted.folder, wanted.seconds)
    except (GuestError, MissingError) as error:
        print(f"ibprof_testing.guest: {error}", file=sys.stderr)
        return 125
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    print(f"ibprof_testing.guest: {done.seconds:.1f} s", file=sys.stderr)
    return done.status


if __name__ == "__main__":
    sys.exit(main())
