#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The packages of Debian 12 in a guest with Debian's own kernel, which has AppArmor: the profile in force, the unit
# with nothing added. What check.sh has left in $B/deb is taken, and the kernel of tests/vm. TAP; status 77, and the
# reason, where there can be no guest. Root; half a minute of one processor, or more where there is no other.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
deb=$B/deb
root=$deb/guest.tmp

unable()
{
	echo "$*"
	exit 77
}

PATH=$PATH:/usr/sbin:/sbin
command -v qemu-system-x86_64 >/dev/null || unable "no qemu-system-x86_64 here"
command -v cpio >/dev/null || unable "no cpio here"
[ -e "$B/vm/kernel/vmlinuz" ] || unable "no $B/vm/kernel: tests/vm/build.sh makes it, as part of make check"
[ -e "$deb/base-bookworm/.complete" ] && [ -e "$deb/new-bookworm" ] || unable "no packages of Debian 12: check.sh bookworm"
trap 'rm -rf "$root" "$deb/guest.cpio.gz"' EXIT
trap 'exit 130' INT TERM HUP

rm -rf "$root"
cp -a "$deb/base-bookworm" "$root" && mkdir "$root/root/debs" "$root/root/modules" &&
	cp "$deb"/new-bookworm/longhaul{d,-tools}_*.deb "$root/root/debs/" &&
	cp tests/data/bidir-2qp.pcap "$root/root/test.pcap" && cp tests/deb/guest-try.sh "$root/root/try.sh" || exit 1
for m in llc stp bridge veth; do
	cp "$B/vm/kernel/modules/$m.ko" "$root/root/modules/" || exit 1
done
chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c '
	apt-get -q update && apt-get -qy --no-install-recommends install apparmor kmod /root/debs/*.deb &&
	apt-get clean && rm -rf /root/debs /var/lib/apt/lists/* /usr/share/doc /usr/share/man /usr/share/locale' \
	>"$deb/guest.log" 2>&1 </dev/null || { tail -n 3 "$deb/guest.log"; exit 1; }
printf '[Service]\nType=oneshot\nExecStart=/bin/bash /root/try.sh\n' >"$root/etc/systemd/system/try.service"
ln -s ../try.service "$root/etc/systemd/system/multi-user.target.wants/try.service"
(cd "$root" && find . -xdev | cpio -o -H newc --quiet | gzip -1) >"$deb/guest.cpio.gz" || exit 1
rm -rf "$root"
timeout -k 5 "${GUEST_SECONDS:-600}" qemu-system-x86_64 -accel tcg -m 1536 -nographic -no-reboot -kernel "$B/vm/kernel/vmlinuz" \
	-initrd "$deb/guest.cpio.gz" -append "console=ttyS0 rdinit=/sbin/init quiet loglevel=3 apparmor=1" \
	</dev/null >"$deb/guest.log" 2>&1
# the first line may follow what the firmware wrote
tr -d '\r' <"$deb/guest.log" | grep -aoE '(not ok|ok) [0-9]+ - .*|^# .*|^1\.\.[0-9]+$' >"$deb/guest.lines"
cat "$deb/guest.lines"
grep -q '^1\.\.' "$deb/guest.lines" || { echo "Bail out! the guest did not come to its end, see $deb/guest.log"; exit 1; }
! grep -q '^not ok' "$deb/guest.lines"
