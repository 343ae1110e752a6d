#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Kernel and initramfs of the guests, from Debian's packages: $B/vm/kernel/vmlinuz and $B/vm/initrd; with the argument
# "storage" $B/vm/initrd-storage, which has NVMe over RDMA, iSER and NFS over RDMA, both ends of each, a disk in memory,
# and fio besides; and rsockets' rstream and riostream, and UCX's and libfabric's tools where they are installed; with
# "gateway" $B/vm/initrd-gateway, which is no host but has longhauld, bond and bridge; with "zerocopy"
# $B/vm/initrd-zerocopy, such a box with the latest kernel of Debian 13's backports, $B/vm/kernel-new/vmlinuz.
#
# The kernel is taken out of its package (this system's own need not have RDMA, and is not touched).
# Programs and their libraries are copied from this system, where `make deps` has installed them.
# What is there and up to date is left alone. Exit status 77, and the reason as one line on standard
# output, when something that is needed is not to be had here: then there are no guests to test with.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
out=$B/vm
arch=amd64

# A kernel for servers: the one for clouds has no RDMA.
KERNEL=linux-image-$arch
# In any order: what they need is looked up. rdma_rxe asks for the crc32 hash by name when a link is
# added, so crc32_generic is nobody's dependency and must be loaded before it; newer kernels have
# neither.
MODULES="virtio_pci virtio_net crc32_generic rdma_rxe rdma_ucm ib_uverbs"
PROGRAMS="ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw ib_write_lat ib_send_lat ib_read_lat ib_atomic_lat
	rping ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_devinfo ip rdma ethtool"
OURS=("$B/vm/vcheck" "$B/longhaul-probe")
initrd=$out/initrd
kernel=$out/kernel
if [ "${1:-}" = storage ]; then
	# what nvme-core and iscsi_target_mod ask for by name comes first, too
	MODULES="crc64_rocksoft_generic crc32c_generic $MODULES configfs brd nvme_rdma nvmet_rdma sd_mod ib_iser ib_isert target_core_iblock
		nfsd nfsv4 rpcrdma"
	PROGRAMS+=" fio rstream riostream"
	initrd=$out/initrd-storage
elif [ "${1:-}" = gateway ]; then
	MODULES="virtio_pci virtio_net bridge bonding veth wireguard gcm ctr cmac ghash_generic macsec"
	PROGRAMS="ip bridge ethtool wg"
	OURS=("$B/longhauld" "$B/longhaul")
	initrd=$out/initrd-gateway
elif [ "${1:-}" = zerocopy ]; then
	# what is built for clouds is small, and has all that a box needs
	KERNEL='^linux-binary-[0-9][^ ]*-cloud-amd64$'
	MODULES="virtio_pci virtio_net bridge"
	PROGRAMS="ip bridge ethtool"
	OURS=("$B/longhauld" "$B/longhaul")
	initrd=$out/initrd-zerocopy
	kernel=$out/kernel-new
fi

unable()
{
	echo "$*"
	exit 77
}

fail()
{
	echo "vm/build.sh: $*" >&2
	exit 1
}

find_program() # NAME: its path, also where only root's PATH leads
{
	PATH=$PATH:/usr/sbin:/sbin command -v "$1"
}

# The package's file, downloaded once
kernel_package()
{
	local name deb

	deb=$(echo "$out"/linux-image-*.deb)
	[ ! -e "$deb" ] || return 0
	command -v apt-get >/dev/null || unable "no apt-get here to get a guest kernel with"
	name=$(apt-cache depends --no-recommends $KERNEL 2>/dev/null |
		sed -n "s/.*Depends: \(linux-image-[^ ]*-$arch\).*/\1/p" | head -n 1)
	if [ -z "$name" ]; then
		apt-get -qq update
		name=$(apt-cache depends --no-recommends $KERNEL 2>/dev/null |
			sed -n "s/.*Depends: \(linux-image-[^ ]*-$arch\).*/\1/p" | head -n 1)
	fi
	[ -n "$name" ] || unable "no package $KERNEL to be had"
	rm -rf "$out/download" && mkdir "$out/download" &&
	(cd "$out/download" && apt-get -qq -o APT::Sandbox::User=root download "$name") >&2 &&
	mv "$out"/download/*.deb "$out/" && rmdir "$out/download" && return
	rm -rf "$out/download"
	unable "package $name cannot be downloaded"
}

# Kernel and modules out of the package, into $out/kernel
kernel_unpack()
{
	local deb tree=$out/kernel.tmp

	# the latest that is taken from the package
	# nfsd: what an older version of this script unpacked has none
	[ ! -e "$out/kernel/modules/nfsd.ko" ] || return 0
	deb=$(echo "$out"/linux-image-*.deb)
	rm -rf "$tree" "$out/kernel" && mkdir "$tree" &&
	dpkg --fsys-tarfile "$deb" | tar -x -C "$tree" --wildcards './boot/vmlinuz-*' '*/kernel/drivers/infiniband/*' \
		'*/kernel/drivers/virtio/*' '*/kernel/drivers/net/*.ko*' '*/kernel/net/*' '*/kernel/crypto/*' \
		'*/kernel/lib/*' '*/kernel/arch/*' '*/kernel/fs/configfs/*' '*/kernel/block/*' \
		'*/kernel/drivers/block/brd.ko*' '*/kernel/drivers/nvme/*' '*/kernel/drivers/scsi/*.ko*' '*/kernel/drivers/target/*' \
		'*/kernel/fs/nfs*' '*/kernel/fs/lockd/*' '*/kernel/fs/fscache/*' '*/kernel/fs/netfs/*' ||
		fail "cannot unpack $deb"
	# newer packages compress modules
	find "$tree" -name '*.ko.xz' -exec unxz {} +
	mkdir "$tree/modules" && find "$tree" -path "$tree/modules" -prune -o -name '*.ko' -exec mv -t "$tree/modules" {} + &&
	mv "$tree"/boot/vmlinuz-* "$tree/vmlinuz" && rm -rf "${tree:?}"/{boot,lib,usr} &&
	mv "$tree" "$out/kernel"
}

# The same for the latest kernel of backports, into $out/kernel-new. apt has lists of its own for that: this system may be
# another Debian, and what it takes packages from is not touched.
kernel_new()
{
	local tree name apt

	tree=$(realpath -m "$out/kernel-new.tmp")

	[ ! -e "$kernel" ] || return 0
	rm -rf "$tree" && mkdir -p "$tree"/apt/{lists,archives}/partial "$tree"/{root,modules} || return
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie-backports main" \
		>"$tree/apt/sources.list"
	apt=(-o "Dir::State=$tree/apt" -o "Dir::Cache=$tree/apt" -o "Dir::Etc::sourcelist=$tree/apt/sources.list"
		-o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root)
	apt-get -qq "${apt[@]}" update >&2 || unable "no lists of Debian 13's backports to be had"
	name=$(apt-cache "${apt[@]}" search "$KERNEL" | sed 's/ .*//' | sort -V | tail -n 1)
	[ -n "$name" ] || unable "no kernel in Debian 13's backports"
	(cd "$tree" && apt-get -qq "${apt[@]}" download "$name" "${name/binary/modules}") >&2 ||
		unable "package $name cannot be downloaded"
	for name in "$tree"/*.deb; do
		dpkg -x "$name" "$tree/root" || return
	done
	find "$tree/root" -name '*.ko.xz' -exec unxz {} +
	find "$tree/root" -name '*.ko' -exec mv -t "$tree/modules" {} + && mv "$tree"/root/usr/lib/modules/*/vmlinuz "$tree/" &&
	rm -rf "${tree:?}"/{root,apt} "$tree"/*.deb && mv "$tree" "$kernel"
}

# The initiator's programs for iSER, which are not installed: their package would start a daemon here. Into $out/iscsi;
# without them the guests have no iSER.
iscsi_package()
{
	local deb libs tree=$out/iscsi.tmp

	[ ! -e "$out/iscsi" ] || return 0
	# these two are hardly anywhere installed, the others are everywhere
	libs=$(apt-cache depends open-iscsi 2>/dev/null | sed -n 's/.*Depends: \(lib\(isns\|openiscsiusr\)[^ ]*\)$/\1/p')
	# shellcheck disable=SC2086
	rm -rf "$tree" && mkdir -p "$tree/lib" &&
	(cd "$tree" && apt-get -qq -o APT::Sandbox::User=root download open-iscsi $libs) >&2 || return
	for deb in "$tree"/*.deb; do
		dpkg -x "$deb" "$tree/root" || return
	done
	find "$tree/root" -name 'lib*.so.*' -exec cp -P -t "$tree/lib" {} + &&
	find "$tree/root" -type f \( -path '*bin/iscsid' -o -path '*bin/iscsiadm' \) -exec cp -t "$tree" {} + &&
	[ -x "$tree/iscsid" ] && rm -rf "$tree/root" "$tree"/*.deb && mv "$tree" "$out/iscsi"
}

declare -A module_done
module_order() # NAME: it and what it needs, in the order of loading
{
	local file=$kernel/modules/${1//-/_}.ko d alt

	# file names may have either - or _
	for alt in "$1" "${1//_/-}" "${1//-/_}"; do
		[ ! -e "$kernel/modules/$alt.ko" ] || file=$kernel/modules/$alt.ko
	done
	[ -z "${module_done[${1//-/_}]:-}" ] || return 0
	module_done[${1//-/_}]=1
	# built into the kernel, or gone from it
	[ -e "$file" ] || return 0
	for d in $("$MODINFO" -F depends "$file" | tr , ' '); do
		module_order "$d"
	done
	echo "$file"
}

# Programs with the shared libraries that they are linked with
copy_programs() # ROOT PATH...
{
	local root=$1

	shift
	cp -L "$@" "$root/bin/" && copy_libraries "$root" "$@"
}

copy_libraries() # ROOT PATH...: those that these are linked with
{
	local root=$1 lib

	shift
	ldd "$@" | sed -n 's/^[^/]*\(\/[^ :]*\) (.*/\1/p' | sort -u | while read -r lib; do
		mkdir -p "$root$(dirname "$lib")" && cp -Lu "$lib" "$root$lib" || exit 1
	done
}

# UCX's and libfabric's tools, which are not needed. UCX finds its transports by their names, in a folder beside its
# libraries.
copy_optional() # ROOT
{
	local p tools=() modules

	modules=$(echo /usr/lib/*/ucx/libuct_ib.so.0)
	for p in ucx_perftest fi_pingpong; do
		p=$(find_program $p) && tools+=("$p")
	done
	[ ${#tools[@]} = 0 ] || copy_programs "$1" "${tools[@]}" || return
	[ ! -e "$modules" ] || { mkdir -p "$1${modules%/*}" && cp -P "${modules%/*}"/libuct_{ib,rdmacm}.so* "$1${modules%/*}" &&
		copy_libraries "$1" "${modules%/*}"/libuct_{ib,rdmacm}.so.0; }
}

# What RDMA needs besides programs
rdma_files() # ROOT
{
	local root=$1 provider gcc

	if [ "${initrd##*-}" = storage ] && [ -e "$out/iscsi" ]; then
		copy_programs "$root" "$out"/iscsi/iscsi{d,adm} && mkdir -p "$root/lib/x86_64-linux-gnu" &&
			cp -L "$out"/iscsi/lib/* "$root/lib/x86_64-linux-gnu/" || return
	fi
	[ "${initrd##*-}" != storage ] || copy_optional "$root" || return
	mkdir -p "$root/etc/libibverbs.d" || return
	# libibverbs loads the driver's user part by name, glibc loads libgcc_s for pthread_exit
	provider=$(echo /usr/lib/*/libibverbs/librxe-rdmav*.so)
	[ -e "$provider" ] || unable "no user-space driver of rxe here (package ibverbs-providers)"
	mkdir -p "$root$(dirname "$provider")" && cp -L "$provider" "$root$provider" &&
	echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver" || return
	gcc=$(ldconfig -p 2>/dev/null | sed -n 's/.*libgcc_s\.so\.1 (.*x86-64.*=> //p' | head -n 1)
	[ -n "$gcc" ] || gcc=$(PATH=$PATH:/sbin ldconfig -p | sed -n 's/.*libgcc_s\.so\.1 (.*x86-64.*=> //p' | head -n 1)
	[ -n "$gcc" ] || unable "no libgcc_s here"
	mkdir -p "$root$(dirname "$gcc")" && cp -L "$gcc" "$root$gcc"
}

initramfs()
{
	local root=$initrd.root p paths=() m

	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules,etc} || return
	for p in $PROGRAMS; do
		paths+=("$(find_program "$p")") || unable "no program $p here"
	done
	copy_programs "$root" "${paths[@]}" "${OURS[@]}" && cp "$(find_program busybox)" "$root/bin/busybox" || return
	[ "${OURS[0]}" = "$B/longhauld" ] || rdma_files "$root" || return
	for m in $MODULES; do
		module_order $m
	done >"$initrd.modules"
	while read -r m; do
		cp "$m" "$root/modules/" && basename "$m"
	done <"$initrd.modules" >"$root/modules/order"
	cp tests/vm/guest-init "$root/init" && chmod 755 "$root/init" && printf 'root:x:0:0::/:/bin/sh\n' >"$root/etc/passwd" &&
	(cd "$root" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$initrd.tmp" &&
	mv "$initrd.tmp" "$initrd" && rm -rf "$root"
}

[ "$(uname -m)" = x86_64 ] || unable "guests are x86-64, this is $(uname -m)"
find_program qemu-system-x86_64 >/dev/null || unable "no qemu-system-x86_64 here"
for p in busybox cpio dpkg unxz modinfo $PROGRAMS; do
	find_program $p >/dev/null || unable "no program $p here"
done
[ -e /usr/include/infiniband/verbs.h ] || unable "no headers of libibverbs here (package libibverbs-dev)"
[ -e /usr/include/rdma/rdma_cma.h ] || unable "no headers of librdmacm here (package librdmacm-dev)"
[ -x "$B/vm/vcheck" ] && [ -x "$B/vm/rate" ] && [ -x "$B/longhaul-probe" ] || fail "no $B/vm/vcheck and rate: make vm-programs comes first"
MODINFO=$(find_program modinfo)
mkdir -p "$out" || exit 1
# one at a time: several test runs may share a build directory
exec 9>"$out/lock" && flock 9 || exit 1
if [ "$kernel" = "$out/kernel" ]; then
	kernel_package
	kernel_unpack || fail "cannot unpack the kernel"
else
	kernel_new || fail "cannot unpack the kernel"
fi
[ "${1:-}" != storage ] || iscsi_package || echo "vm/build.sh: no package open-iscsi to be had: the guests have no iSER" >&2
for f in tests/vm/build.sh tests/vm/guest-init "${OURS[@]}"; do
	[ ! "$f" -nt "$initrd" ] || rm -f "$initrd"
done
[ -e "$initrd" ] || initramfs || fail "cannot make the initramfs"
