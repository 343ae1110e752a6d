#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Measures of C sources, one line for each place that is beyond LIMIT:
#
#	measure.pl functions LIMIT FILE ...	functions whose body has more lines
#	measure.pl columns LIMIT FILE ...	lines that are wider, with tabs of 8
#	measure.pl fields LIMIT FILE ...	structs with more fields
#
# The style of the tree makes them simple: a body stands between a '{' and a '}' in the first column, and so does a
# struct. The fields of a struct or union without a tag, inside of another, count as that one's, whether the inner one
# has a name or not; a member of a type that is declared elsewhere counts once.
use strict;
use warnings;

my ($what, $limit, @files) = @ARGV;
die "usage: measure.pl functions|columns|fields LIMIT FILE ...\n"
	unless defined $limit && $what =~ /^(functions|columns|fields)$/;

sub width
{
	my $line = shift;

	1 while $line =~ s/^([^\t]*)\t/$1 . ' ' x (8 - length($1) % 8)/e;
	return length $line;
}

# How many fields the text between the braces of a struct declares.
sub fields
{
	my $body = shift;

	1 while $body =~ s/\([^()]*\)//; # parameters of function pointers
	$body =~ s/\benum\b[^{};]*\{[^{}]*\}//g;
	1 while $body =~ s/\b(?:struct|union)\s*\{([^{}]*)\}[^;{}]*;/$1/; # from the inside: their fields stay
	return scalar grep { /\w/ } map { split /,/ } split /;/, $body;
}

sub measure_fields
{
	my ($file, $text) = @_;

	$text =~ s{(/\*.*?\*/|//[^\n]*)}{$1 =~ s/[^\n]//gr}gse;
	while ($text =~ /^(?:typedef )?struct (\w+) \{\n(.*?)^\}/gms) {
		my ($name, $n) = ($1, fields($2));

		print "$file:", 1 + (substr($text, 0, $-[0]) =~ tr/\n//), ": struct $name: $n fields\n" if $n > $limit;
	}
}

for my $file (@files) {
	my ($begin, $name) = (0, '?');

	open(my $in, '<:encoding(UTF-8)', $file) or die "$file: $!\n";
	if ($what eq 'fields') {
		local $/;
		measure_fields($file, scalar <$in>);
		next;
	}
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
