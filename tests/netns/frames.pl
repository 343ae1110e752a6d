#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Raw frames of a capture file over an interface, for the netns tests.
#
#	frames.pl send INTERFACE FILE SOURCE    sends FILE's IPv4 frames of that source address
#	frames.pl list FILE SOURCE [SINCE]      prints what that would be, one frame in hex per line; those captured
#	                                        after SINCE, seconds since 1970
#	frames.pl recv INTERFACE SOURCE N       prints the first N frames received from that address
#
# recv gives up after 50 s. It says "ready" on standard error when it listens.
use strict;
use warnings;

use constant { AF_PACKET => 17, SOCK_RAW => 3, ETH_P_ALL => 3 };

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
if ($do eq 'send' && @ARGV == 3) {
	my $s = packet_socket($ARGV[0]);
	for my $frame (capture($ARGV[1], $ARGV[2])) {
		defined syswrite($s, $frame) or die "send: $!\n";
	}
} elsif ($do eq 'list' && (@ARGV == 2 || @ARGV == 3)) {
	print unpack('H*', $_), "\n" for capture(@ARGV);
} elsif ($do eq 'recv' && @ARGV == 3) {
	my ($interface, $source, $n) = @ARGV;
	my $s = packet_socket($interface);
	$| = 1;
	$SIG{ALRM} = sub { exit 1 };
	alarm 50;
	print STDERR "ready\n";
	while ($n && defined recv($s, my $frame, 65536, 0)) {
		next unless source_of($frame) eq $source;
		print unpack('H*', $frame), "\n";
		$n--;
	}
} else {
	die "usage: frames.pl send|list|recv ..., see its head\n";
}
