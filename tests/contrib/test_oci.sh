#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# contrib/oci: the image is built from the packages of `make deb`, and a container of it runs at each site of lib.sh, as
# contrib/README.md says: its rights are the least that do, it reloads, what it knew outlives it, and a stop leaves
# nothing. The network of a host is played by a namespace, its folders by those of this test. Root, podman with runc or
# crun, debootstrap and a mirror of Debian; a minute or two. What is missing is said, and nothing is tried then.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

unable()
{
	skip "OCI image" "$1"
	exit 0
}

PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || unable "needs root"
command -v podman >/dev/null || unable "no podman here: apt-get install podman runc"
command -v debootstrap >/dev/null || unable "no debootstrap here, which makes what the image is built on"
ls "$B"/deb/longhauld_*.deb >/dev/null 2>&1 || unable "no packages in $B/deb: make deb"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

# What podman keeps is in a place of its own. Its limits cannot be raised in a container without CAP_SYS_RESOURCE.
store=$LAB/podman
runtime=$(command -v runc || command -v crun)
cat >"$LAB/containers.conf" <<-.
	[containers]
	default_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]
	[engine]
	cgroup_manager = "cgroupfs"
.
export CONTAINERS_CONF=$LAB/containers.conf
pod()
{
	podman --root "$store/root" --runroot "$store/run" --runtime "$runtime" "$@"
}

oci_cleanup()
{
	local status=$? s

	pod rm -f -a -t 0 >/dev/null 2>&1
	pod rmi -f -a >/dev/null 2>&1
	for s in a b; do
		umount -l "$LAB/$s/run" "$LAB/$s/bpf" 2>/dev/null
	done
	umount -l "$store/root/overlay" 2>/dev/null
	(exit $status)
	lab_cleanup
}
trap oci_cleanup EXIT

# Rights that the README names; memory is locked by a limit there, where a test may have no more than it has
RIGHTS=(NET_ADMIN NET_RAW BPF PERFMON)
LOCK=(--ulimit memlock=-1:-1)
prlimit --memlock=unlimited true 2>/dev/null || LOCK=(--cap-add IPC_LOCK)

# In $B/deb, where make does not look for files of its own
base()
{
	local root=$B/deb/minbase-$suite

	[ -e "$root/.complete" ] || {
		rm -rf "$root" && debootstrap --variant=minbase "$suite" "$root" ${MIRROR:+"$MIRROR"} && touch "$root/.complete"
	} || return
	tar -C "$root" -c . | pod import - localhost/base
}

# options SITE RIGHT...: of podman run, as the README has them
options()
{
	local s=$1 r

	shift
	printf '%s\n' --network "ns:/run/netns/$P-g$s" --cap-drop all "${LOCK[@]}" --security-opt seccomp=unconfined --read-only \
		-v "$LAB/$s/etc:/etc/longhaul:ro" -v "$LAB/$s/run:/run/longhaul" -v "$LAB/$s/bpf:/sys/fs/bpf"
	for r; do
		printf '%s\n' --cap-add "$r"
	done
}

folders() # SITE: those of a host
{
	local s=$1

	mkdir -p "$LAB/$s/etc" "$LAB/$s/run" "$LAB/$s/bpf" && mount -t tmpfs tmpfs "$LAB/$s/run" && mount -t bpf bpf "$LAB/$s/bpf" &&
	gateway_config "$s" -g "wan-rate = 380M" -r "prefetch = on" &&
	sed "/^socket/d; s|$LAB/key|/etc/longhaul/link.key|" "$LAB/gw-$s.conf" >"$LAB/$s/etc/longhaul.conf" &&
	cp -p "$LAB/key" "$LAB/$s/etc/link.key" &&
	ln -s "$LAB/$s/run/longhaul.sock" "$LAB/gw-$s.sock"
}

container() # SITE: starts one
{
	local opts

	mapfile -t opts < <(options "$1" "${RIGHTS[@]}")
	pod run -d --name "$P-$1" "${opts[@]}" localhost/longhaul && answers "$1"
}

answers() # SITE
{
	pid[gw-$1]=$(pod inspect -f '{{.State.Pid}}' "$P-$1")
	await 30 cli "$1" rule
}

check_config() # SITE: of the file in its folder, in a container that ends
{
	local opts

	mapfile -t opts < <(options "$1" "${RIGHTS[@]}")
	pod run --rm "${opts[@]}" localhost/longhaul --check-config
}

without() # RIGHT: it does not start, and says why
{
	local opts right r=()

	for right in "${RIGHTS[@]}"; do
		[ "$right" = "$1" ] || r+=("$right")
	done
	mapfile -t opts < <(options a "${r[@]}")
	! timeout -k 5 30 podman --root "$store/root" --runroot "$store/run" --runtime "$runtime" run --rm "${opts[@]}" localhost/longhaul \
		>"$LAB/without.out" 2>&1 && cat "$LAB/without.out" && grep -q "no permission.*$1" "$LAB/without.out"
}

daemon_of() # SITE FIELD: of its /proc/PID/status
{
	sed -n "s/^$2:[[:space:]]*//p" "/proc/${pid[gw-$1]}/status"
}

went_on() # SITE
{
	pod logs "$P-$1" 2>&1 | grep -q 'going on where a former longhauld ended'
}

killed() # SITE: and started anew
{
	pod kill -s KILL "$P-$1" && pod wait "$P-$1" && pod start "$P-$1" && answers "$1" && went_on "$1"
}

replaced() # SITE: by a new container, without a stop
{
	pod rm -f -t 0 "$P-$1" && container "$1" && went_on "$1"
}

amid() # NAME EVENT...: a stream from a goes on
{
	local name=$1 status=0

	shift
	next_qpns
	transfer_begin "$name" a --op write --size 64K --depth 16 --mtu 4096 --timeout-exp 16 --seconds 600
	await 60 held_now || status=1
	"$@" || status=1
	more "$name-req" 100 && await 30 held_now || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] && [ $status = 0 ]
}

lab_up
wan_start --delay-ms 10 --rate-mbps 400
for s in a b; do
	folders $s || die "cannot make the folders of site $s"
done
it "a base, by debootstrap of $suite" base || exit 1
it "podman build" pod build --network host --build-arg BASE=localhost/base -f contrib/oci/Containerfile -t localhost/longhaul "$B/deb" || exit 1
it "the configuration is checked in a container" check_config a
for r in "${RIGHTS[@]}"; do
	it "without CAP_$r it does not start, and says so" without "$r"
done
it "a container at each site, and the peers find each other" eval 'container a && container b && await 30 peers_up'
# NET_ADMIN is 1 << 12, BPF 1 << 39
it "no capability but CAP_BPF and CAP_NET_ADMIN; none to hand on; system calls are filtered" eval '
	case $(daemon_of a CapEff) in 0000008000000000 | 0000008000001000) ;; *) daemon_of a CapEff; false ;; esac &&
	[ "$(daemon_of a CapAmb)" = 0000000000000000 ] && [ "$(daemon_of a Seccomp)" = 2 ]'
it "a transfer is accelerated" amid transfer true
it "longhaul status in the container, by its exit status" pod exec "$P-a" longhaul status
it "reload from inside: a file with errors is refused" eval '
	echo "colour = blue" >>"$LAB/a/etc/longhaul.conf" && ! pod exec "$P-a" longhaul reload &&
	sed -i "/colour/d; s/^\[peer/idle-timeout = 9min\n&/" "$LAB/a/etc/longhaul.conf" && pod exec "$P-a" longhaul reload'
it "killed amid a transfer and started again: hosts notice no error" amid killed killed a
it "replaced by a new container amid a transfer: likewise" amid replaced replaced b
it "a stop leaves nothing in custody, and nothing pinned" eval '
	pod stop -t 30 "$P-a" && [ "$(pod inspect -f "{{.State.ExitCode}}" "$P-a")" = 0 ] &&
	pod logs "$P-a" 2>&1 | tail -n 3 && pod logs "$P-a" 2>&1 | grep -q "stopped, nothing left in custody" && ! ls -d "$LAB"/a/bpf/longhaul/*/* "$LAB"/a/run/*.state'
exit $((tests_failed > 0))
