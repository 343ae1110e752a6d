#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two measures of C sources, one line for each place that is beyond LIMIT:
#
#	measure.pl functions LIMIT FILE ...	functions whose body has more lines
#	measure.pl columns LIMIT FILE ...	lines that are wider, with tabs of 8
#
# The style of the tree makes both simple: a body stands between a '{' and a '}' in the first column.
use strict;
use warnings;

my ($what, $limit, @files) = @ARGV;
die "usage: measure.pl functions|columns LIMIT FILE ...\n"
	unless defined $limit && $what =~ /^(functions|columns)$/;

sub width
{
	my $line = shift;

	1 while $line =~ s/^([^\t]*)\t/$1 . ' ' x (8 - length($1) % 8)/e;
	return length $line;
}

for my $file (@files) {
	my ($begin, $name) = (0, '?');

	open(my $in, '<:encoding(UTF-8)', $file) or die "$file: $!\n";
	while (my $line = <$in>) {
		chomp $line;
		if ($what eq 'columns') {
			my $w = width($line);
			print "$file:$.: $w columns\n" if $w > $limit;
			next;
		}
		$name = $1 if $line =~ /^\w.*?(\w+)\(/;
		$begin = $. if $line eq '{';
		next unless $line eq '}' && $begin;
		my $n = $. - $begin - 1;
		print "$file:$begin: $name(): $n lines\n" if $n > $limit;
		$begin = 0;
	}
	close $in;
}
