#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Reads `gcov -t` of many objects, and sums up by folder. A line of a header counts once, whoever includes it.
#
#	coverage.pl REPORT	figures to standard output, each file with the lines that nothing ran into REPORT
use strict;
use warnings;

my $report = shift // die "usage: coverage.pl REPORT\n";
my (%ran, %folder, $file);

while (<STDIN>) {
	if (/^\s*-:\s*0:Source:(.*)$/) {
		$file = $1 =~ m{(?:^|/)(proxyd/.*)$} ? $1 : undef;
	} elsif (defined $file && /^\s*([0-9]+\*?|#####|=====):\s*(\d+):/) {
		$ran{$file}{$2} ||= $1 =~ /^[1-9]/ ? 1 : 0;
	}
}
die "coverage.pl: nothing was run\n" unless %ran;

# 3-5, 8, 10-11
sub ranges
{
	my @out;

	for my $n (@_) {
		if (@out && $out[-1][1] == $n - 1) {
			$out[-1][1] = $n;
		} else {
			push @out, [$n, $n];
		}
	}
	return join ', ', map { $_->[0] == $_->[1] ? $_->[0] : "$_->[0]-$_->[1]" } @out;
}

open(my $out, '>', $report) or die "$report: $!\n";
for my $f (sort keys %ran) {
	my $lines = $ran{$f};
	my @missed = sort { $a <=> $b } grep { !$lines->{$_} } keys %$lines;
	my ($all, $run) = (scalar keys %$lines, keys(%$lines) - @missed);

	printf $out "%3d %%  %s  %s\n", 100 * $run / $all, $f, ranges(@missed);
	for my $sum ($f =~ s{/[^/]*$}{}r, 'all') {
		$folder{$sum}[0] += $all;
		$folder{$sum}[1] += $run;
	}
}
close $out;
for my $d (sort grep { $_ ne 'all' } keys %folder) {
	printf "%-28s %5d lines %5.1f %%\n", $d, $folder{$d}[0], 100 * $folder{$d}[1] / $folder{$d}[0];
}
printf "coverage: lines=%d run=%d percent=%.1f\n", @{$folder{all}}, 100 * $folder{all}[1] / $folder{all}[0];
