# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Storage protocols between two guests, with what Linux has at both ends: the initiator or client in a, the target or
# server in b, on memory. Beside tests/vm/lib.sh. Of each PROTOCOL (nvme, iser, nfs)
#
#	PROTOCOL_up			the target is there; once
#	PROTOCOL_connect INLINE		at a $disk can be read and written; INLINE bytes of a write go with the command
#	PROTOCOL_disconnect
#	PROTOCOL_break			the target drops its connections, and takes none for a second
#	PROTOCOL_reset			the initiator does
#	PROTOCOL_at			what $disk is at the target, and how fio is to open it
#
# The files in /proc and /sys are written by hand: so no package is needed that would start servers here.

CONFIGFS=/sys/kernel/config
NVMET=$CONFIGFS/nvmet
IQN=iqn.2014-08.org.example
LIO=$CONFIGFS/target/iscsi/$IQN:t/tpgt_1
disk=

one_line() # a command for a guest, which takes lines
{
	echo "$1" | tr -s '\n\t' '  '
}

# The configuration file system, for several protocols
WITH_CONFIGFS="{ grep -q ' $CONFIGFS ' /proc/mounts || mount -t configfs none $CONFIGFS; }"

# ---- NVMe over RDMA ----

# A port for each size of inline data, 4420 and 4421
nvme_up()
{
	local to port=4420 size cmd

	to=$(addr b 1 4)
	cmd="$WITH_CONFIGFS && cd $NVMET && mkdir subsystems/disk && cd subsystems/disk &&
		echo 1 >attr_allow_any_host && mkdir namespaces/1 && printf /dev/ram0 >namespaces/1/device_path &&
		echo 1 >namespaces/1/enable"
	for size in 0 16384; do
		cmd+=" && mkdir $NVMET/ports/$port && cd $NVMET/ports/$port && echo rdma >addr_trtype && echo ipv4 >addr_adrfam &&
			echo $to >addr_traddr && echo $port >addr_trsvcid && echo $size >param_inline_data_size &&
			ln -s $NVMET/subsystems/disk subsystems/disk"
		port=$((port + 1))
	done
	guest b 30 "$(one_line "$cmd")"
}

nvme_connect()
{
	local port=4420

	[ "$1" = 0 ] || port=4421
	disk=/dev/nvme0n1
	guest a 60 "$(one_line "echo 'transport=rdma,traddr=$(addr b 1 4),trsvcid=$port,nqn=disk,nr_io_queues=1,queue_size=64,reconnect_delay=1,hostnqn=nqn.2014-08.org.nvmexpress:uuid:6c6f6e67-6861-756c-0000-000000000001' >/dev/nvme-fabrics &&
		until [ -b $disk ]; do sleep 0.1; done")"
}

nvme_disconnect()
{
	guest a 60 'for c in /sys/class/nvme/nvme*; do echo 1 >$c/delete_controller; done'
}

nvme_break()
{
	guest b 60 "$(one_line "cd $NVMET/ports && for p in *; do rm \$p/subsystems/disk; done; sleep 1;
		for p in *; do ln -s $NVMET/subsystems/disk \$p/subsystems/disk; done")"
}

nvme_reset()
{
	guest a 60 'for c in /sys/class/nvme/nvme*; do echo 1 >$c/reset_controller; done'
}

nvme_at()
{
	echo /dev/ram0
}

# ---- iSCSI over RDMA ----

iser_up()
{
	local to

	to=$(addr b 1 4)
	guest b 30 "$(one_line "$WITH_CONFIGFS && cd $CONFIGFS/target && mkdir -p core/iblock_0/disk $LIO/lun/lun_0 &&
		echo udev_path=/dev/ram1 >core/iblock_0/disk/control && echo 1 >core/iblock_0/disk/enable &&
		cd $LIO && ln -s $CONFIGFS/target/core/iblock_0/disk lun/lun_0/disk && echo 0 >attrib/authentication &&
		echo 1 >attrib/generate_node_acls && echo 0 >attrib/demo_mode_write_protect &&
		mkdir np/$to:3260 && echo 1 >np/$to:3260/iser && [ \$(cat np/$to:3260/iser) = 1 ] && echo 1 >enable")" &&
	guest a 30 "$(one_line "mkdir -p /etc/iscsi /run/lock/iscsi && echo InitiatorName=$IQN:i >/etc/iscsi/initiatorname.iscsi &&
		echo 'node.startup = manual' >/etc/iscsi/iscsid.conf && { setsid iscsid -f >/tmp/iscsid.log 2>&1 & } &&
		iscsiadm -m node -o new -T $IQN:t -p $to:3260 -I iser")"
}

iser_connect()
{
	local immediate=No

	[ "$1" = 0 ] || immediate=Yes
	disk=/dev/sda
	guest a 90 "$(one_line "iscsiadm -m node -T $IQN:t -o update -n node.session.iscsi.ImmediateData -v $immediate &&
		iscsiadm -m node -T $IQN:t --login && until [ -b $disk ]; do sleep 0.1; done")"
}

iser_disconnect()
{
	guest a 60 "iscsiadm -m node -T $IQN:t --logout"
}

iser_break()
{
	guest b 60 "echo 0 >$LIO/enable; sleep 1; echo 1 >$LIO/enable"
}

iser_at()
{
	echo /dev/ram1
}

# ---- NFS over RDMA ----

nfs_up()
{
	# what mountd would answer: who asks, what file system is meant, how it is exported (0x2402: with the number 0)
	guest b 60 "$(one_line "mkdir -p /srv && mount -t tmpfs -o size=64m tmpfs /srv && mount -t nfsd nfsd /proc/fs/nfsd &&
		cd /proc/fs/nfsd && echo '-2 -3 +4 +4.1 +4.2' >versions && echo 10 >nfsv4leasetime && echo 10 >nfsv4gracetime &&
		echo 'rdma 20049' >portlist && echo 4 >threads && cd /proc/net/rpc &&
		echo 'nfsd $(addr a 1 4) 2147483647 all' >auth.unix.ip/channel &&
		printf 'all 1 \134x00000000 2147483647 /srv\n' >nfsd.fh/channel &&
		echo 'all /srv 2147483647 $((0x2402)) 65534 65534 0' >nfsd.export/channel")"
}

# A call has what fits into its first message, whatever INLINE says.
nfs_connect()
{
	local to

	to=$(addr b 1 4)
	disk=/mnt/x
	guest a 90 "$(one_line "mkdir -p /mnt &&
		mount -t nfs4 -o vers=4.1,proto=rdma,port=20049,addr=$to,clientaddr=$(addr a 1 4),hard $to:/ /mnt && : >>$disk")"
}

nfs_disconnect()
{
	guest a 60 "umount /mnt"
}

nfs_at()
{
	echo /srv/x --direct=0 # there is no tmpfs without a cache
}
