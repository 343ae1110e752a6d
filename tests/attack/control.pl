#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A bad client of the daemon's control socket.
#
#	control.pl hold SOCKET N       opens N connections and says nothing in any; "holding" on standard output,
#	                               and then it waits to be ended
#	control.pl garbage SOCKET      requests that are none, one connection each
#	control.pl config SEED FILE    prints a configuration file with some lines spoilt; nothing to do with a socket
use strict;
use warnings;
use IO::Socket::UNIX;

sub hold
{
	my ($path, $n) = @_;
	my @held;

	for (1 .. $n) {
		# its backlog may be full: the daemon accepts a few at a time
		for my $try (1 .. 200) {
			my $s = IO::Socket::UNIX->new(Peer => $path);
			if ($s) {
				push @held, $s;
				last;
			}
			select(undef, undef, undef, 0.005);
		}
	}
	$| = 1;
	print 'holding ', scalar(@held), "\n";
	sleep 1 while 1;
}

sub garbage
{
	my ($path) = @_;
	my @requests = (
		'A' x 1_000_000, '[' x 4000 . "\n", "\0" x 100 . "\n", '{"cmd":"a","cmd":"b"}' . "\n",
		"{\"cmd\":\"\xff\xfe\"}\n", "\n", '{"cmd":"%s%n%s%n"}' . "\n", "{\"cmd\":1e999}\n",
		'{"cmd":"qp-show"', "{\"cmd\":\"qp-show\"}\n" x 50, '{"cmd":["qp-show"]}' . "\n",
		'{"cmd":"lane-show","lqpn":99999999999999999999}' . "\n", "null\n", "\"\\ud800\"\n");

	local $SIG{PIPE} = 'IGNORE';
	for my $request (@requests, map { join('', map { chr(int(rand(256))) } 1 .. 300) . "\n" } 1 .. 100) {
		my $s = IO::Socket::UNIX->new(Peer => $path) or next;
		$s->blocking(0);
		syswrite($s, $request);
		shutdown($s, 1);
		$s->blocking(1);
		local $SIG{ALRM} = sub { die "no answer to a request of " . length($request) . " bytes\n" };
		alarm 15;
		1 while sysread($s, my $answer, 65536);
		alarm 0;
	}
}

my @VALUES = (
	'', '-1', '0', '18446744073709551616', '9' x 400, '1e999', 'any', '0x', '%n%s', "\xff\xfe", '::/0',
	'0.0.0.0/33', '1.2.3.4/-1', 'a' x 5000, '10G', '1K1', '/dev/zero', '0s', '99999999999h',
	'::ffff:1.2.3.4/96', '0x7f-0x1', '1,' x 3000);

sub spoil
{
	my ($text) = @_;
	my @lines = split(/\n/, $text, -1);
	my @keys = grep { defined } map { /^#? ?([a-z-]+) = / ? $1 : undef } @lines;

	for (1 .. 1 + int(rand(6))) {
		my $at = int(rand(@lines));
		my $value = $VALUES[rand @VALUES];
		my $how = int(rand(7));
		if ($how == 0) {
			substr($lines[$at], rand(length($lines[$at]) + 1), 1) = chr(int(rand(256))) if length($lines[$at]);
		} elsif ($how == 1) {
			splice(@lines, $at, 0, $keys[rand @keys] . " = $value");
		} elsif ($how == 2) {
			splice(@lines, $at, 1 + int(rand(5)));
			push @lines, '' unless @lines;
		} elsif ($how == 3) {
			splice(@lines, $at, 0, join('', map { chr(int(rand(256))) } 1 .. 30));
		} elsif ($how == 4) {
			my @names = ('a', '', 'a' x 300, "\xc3", '..');
			my @kinds = ('peer', 'rule', 'longhaul', 'x');
			splice(@lines, $at, 0, "[$kinds[rand @kinds] $names[rand @names]]");
		} elsif ($how == 5) {
			$lines[$at] =~ s/ = .*/ = $value/s;
		} else {
			push @lines, map { "[rule r$_]\nlan = any\nwan = any\npolicy = off" } 1 .. int(rand(80));
		}
	}
	return join("\n", @lines);
}

my $do = shift // '';
srand($ARGV[0]) if $do eq 'config' && @ARGV;
if ($do eq 'hold' && @ARGV == 2) {
	hold(@ARGV);
} elsif ($do eq 'garbage' && @ARGV == 1) {
	srand(1);
	garbage(@ARGV);
} elsif ($do eq 'config' && @ARGV == 2) {
	local $/;
	open(my $f, '<:raw', $ARGV[1]) or die "$ARGV[1]: $!\n";
	my $text = <$f>;
	# the examples, too
	$text =~ s/^# ([a-z-]+ = )/$1/mg if rand() < 0.5;
	binmode(STDOUT);
	print spoil($text);
} else {
	die "usage: control.pl hold|garbage|config ..., see its head\n";
}
