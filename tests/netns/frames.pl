#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Raw frames of a capture file over an interface, for the netns tests.
#
#	frames.pl send INTERFACE FILE SOURCE [RATE]  sends FILE's IPv4 frames of that source address, RATE a
#	                                        second at most
#	frames.pl list FILE SOURCE [SINCE]      prints what that would be, one frame in hex per line; those captured
#	                                        after SINCE, seconds since 1970
#	frames.pl recv INTERFACE SOURCE N       prints the first N frames received from that address
#	frames.pl number FILE SMAC DMAC SOURCE DEST N  writes N frames into FILE that differ in number, length and
#	                                        content: UD, without an ICRC
#
# recv gives up after 50 s. It says "ready" on standard error when it listens, and at the end how many frames its
# own socket had no room for, if any.
use strict;
use warnings;

use Time::HiRes qw(sleep time);

use constant { AF_PACKET => 17, SOCK_RAW => 3, ETH_P_ALL => 3 };
use constant { SOL_SOCKET => 1, SO_RCVBUFFORCE => 33, SOL_PACKET => 263, PACKET_STATISTICS => 6 };

sub source_of
{
	my ($frame) = @_;

	return '' unless length($frame) >= 34 && substr($frame, 12, 2) eq "\x08\x00";
	return join('.', unpack('C4', substr($frame, 26, 4)));
}

sub capture
{
	my ($file, $source, $since) = @_;
	my ($head, @frames);

	open(my $f, '<:raw', $file) or die "$file: $!\n";
	read($f, $head, 24) == 24 or die "$file: too short\n";
	my $long = unpack('V', $head) == 0xa1b2c3d4 || unpack('V', $head) == 0xa1b23c4d ? 'V' : 'N';
	my $second = unpack($long, $head) == 0xa1b23c4d ? 1e9 : 1e6;
	while (read($f, $head, 16) == 16) {
		my $length = unpack($long, substr($head, 8, 4));
		read($f, my $frame, $length) == $length or die "$file: cut off\n";
		my ($sec, $part) = unpack("$long$long", $head);
		next if $since && $sec + $part / $second <= $since;
		push @frames, $frame if source_of($frame) eq $source;
	}
	return @frames;
}

sub numbered
{
	my ($smac, $dmac, $source, $dest, $n) = @_;
	my $udp = pack('nnnn', 0xc000, 4791, 8 + 12 + 8 + 4 + 16 * ($n % 60 + 1) + 4, 0);
	my $bth = pack('CCnNN', 0x64, 0x40, 0xffff, 0x77, $n) . pack('NN', 0x11111111, 0x77);
	my $l4 = $udp . $bth . pack('N', $n) . pack('N4', $n, ~$n & 0xffffffff, $n * 7, $n) x ($n % 60 + 1) .
		"\0" x 4;
	my $ip = pack('CCnnnCCna4a4', 0x45, 0, 20 + length($l4), 0, 0x4000, 64, 17, 0,
		pack('C4', split(/\./, $source)), pack('C4', split(/\./, $dest)));
	my $sum = 0;

	$sum += $_ for unpack('n*', $ip);
	$sum = ($sum & 0xffff) + ($sum >> 16) for 1, 2;
	substr($ip, 10, 2) = pack('n', ~$sum & 0xffff);
	return pack('H12H12n', $dmac =~ s/://gr, $smac =~ s/://gr, 0x0800) . $ip . $l4;
}

sub packet_socket
{
	my ($interface) = @_;

	open(my $f, '<', "/sys/class/net/$interface/ifindex") or die "$interface: $!\n";
	my $index = <$f>;
	socket(my $s, AF_PACKET, SOCK_RAW, unpack('S', pack('n', ETH_P_ALL))) or die "socket: $!\n";
	bind($s, pack('S n i S C C a8', AF_PACKET, ETH_P_ALL, $index, 0, 0, 0, '')) or die "bind: $!\n";
	return $s;
}

my $do = shift // '';
if ($do eq 'send' && (@ARGV == 3 || @ARGV == 4)) {
	my ($interface, $file, $source, $rate) = @ARGV;
	my $s = packet_socket($interface);
	my ($start, $sent) = (time(), 0);
	for my $frame (capture($file, $source)) {
		my $early = $rate ? $start + $sent / $rate - time() : 0;

		sleep($early) if $early > 0.001;
		defined syswrite($s, $frame) or die "send: $!\n";
		$sent++;
	}
} elsif ($do eq 'number' && @ARGV == 6) {
	my ($file, @who) = @ARGV;
	my $n = pop(@who);

	open(my $f, '>:raw', $file) or die "$file: $!\n";
	print $f pack('VvvVVVV', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1);
	for my $i (1 .. $n) {
		my $frame = numbered(@who, $i);

		print $f pack('VVVV', $i, 0, length($frame), length($frame)), $frame;
	}
	close($f) or die "$file: $!\n";
} elsif ($do eq 'list' && (@ARGV == 2 || @ARGV == 3)) {
	print unpack('H*', $_), "\n" for capture(@ARGV);
} elsif ($do eq 'recv' && @ARGV == 3) {
	my ($interface, $source, $n) = @ARGV;
	my $s = packet_socket($interface);
	my $end = sub {
		my ($seen, $dropped) = unpack('L2', getsockopt($s, SOL_PACKET, PACKET_STATISTICS));

		print STDERR "frames.pl: no room here for $dropped of $seen frames\n" if $dropped;
		exit shift;
	};
	setsockopt($s, SOL_SOCKET, SO_RCVBUFFORCE, pack('i', 64 << 20)) or die "setsockopt: $!\n";
	$| = 1;
	$SIG{ALRM} = sub { $end->(1) };
	alarm 50;
	print STDERR "ready\n";
	while ($n && defined recv($s, my $frame, 65536, 0)) {
		next unless source_of($frame) eq $source;
		print unpack('H*', $frame), "\n";
		$n--;
	}
	$end->($n ? 1 : 0);
} else {
	die "usage: frames.pl send|list|recv|number ..., see its head\n";
}
