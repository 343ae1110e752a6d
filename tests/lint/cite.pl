#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Citations: where the code follows a specification, and which file does which row of doc/features.md. Their form, in any
# comment of proxyd, cli, bpf and tests:
#
#	spec: IBTA 9.7.5.1.1		InfiniBand Architecture Specification, volume 1; annexes A17.3.3, tables "table 38"
#	spec: RFC 3550 6.4.1		a number, and a section where one is meant
#	spec: NVMe 2.0 3.3.1		NVM Express base specification, version, section; NVMe-RDMA 1.0: its RDMA transport
#	row: ENG-10, ENG-12		rows of doc/features.md; of product files only, in the head of the file where all of
#					it is there for the row. Tests name a row by its id alone (features.pl)
#
#	cite.pl		lists them: each section and row with the files that cite it; then what has no code, what no test
#	cite.pl check	lines "form WHERE", "free WHERE", "row WHERE", "code ROW", "spec N", "rows N"
use strict;
use warnings;

my $check = ($ARGV[0] // '') eq 'check';
my $FAMILIES = 'NTT|ENG|FAST|POOL|CONV';
my $SECTION = qr/A?\d+(?:\.\d+)*|table \d+/;
my $SPEC = qr/IBTA (?:$SECTION)(?:, table \d+)?|RFC \d+(?: \d+(?:\.\d+)*)?|NVMe(?:-RDMA)? \d+\.\d+(?: \d+(?:\.\d+)*)?/;

sub slurp
{
	open(my $f, '<', $_[0]) or die "$_[0]: $!\n";
	local $/;
	return <$f>;
}

my (%state, %spec, %row, %tested, @wrong);

for (split /\n/, slurp('doc/features.md')) {
	$state{$1} = $2 if /^\| *((?:$FAMILIES)-\d+) *\|[^|]*\| *(works|partly|not yet)/;
}
die "doc/features.md: no rows\n" unless %state;

my @files = sort grep { -f && !m{^tests/(?:data|fuzz/corpus|lint|selftest)/} && /\.(?:[ch]|pkt|sh|pl|world)$/ }
	split /\0/, `find proxyd cli bpf tests -type f -print0`;
for my $f (@files) {
	my $t = slurp($f);
	my $product = $f !~ m{^tests/};

	# a citation may go on in the next line of its comment
	$t =~ s/\n[ \t]*(?:\*|#)[ \t]+/ /g;
	while ($t =~ /\bspec:\s+(?=(.{0,40}))/g) {
		if ($1 =~ /^($SPEC)(?![\w-])/) {
			my $what = $1;

			push @{$spec{$what}}, $f unless grep { $_ eq $f } @{$spec{$what} // []};
		} else {
			push @wrong, "form $f: spec: $1";
		}
	}
	push @wrong, "free $f: $1" while $t =~ /((?:InfiniBand vol\.|(?<!spec: )\bRFC[ -]?\d|(?<!spec: )\bIBTA\b).{0,20})/g;
	$tested{$_}{$f} = 1 for $product ? () : $t =~ /\b((?:$FAMILIES)-\d+)\b/g;
	next unless $product;
	while ($t =~ /\brow: ((?:$FAMILIES)-\d+(?:, (?:$FAMILIES)-\d+)*)/g) {
		for my $id (split /, /, $1) {
			push @wrong, "row $f: $id has no row" unless $state{$id};
			push @{$row{$id}}, $f unless grep { $_ eq $f } @{$row{$id} // []};
		}
	}
	my $rest = $t =~ s/\brow: (?:(?:$FAMILIES)-\d+(?:, )?)+//gr;
	push @wrong, "free $f: $1" while $rest =~ /\b((?:$FAMILIES)-\d+)\b/g;
}

sub by_id
{
	my ($x, $y) = map { [/(\w+)-(\d+)/] } $a, $b;
	return $x->[0] cmp $y->[0] || $x->[1] <=> $y->[1];
}

my @without = grep { !$row{$_} } sort by_id keys %state;

if ($check) {
	print "$_\n" for @wrong;
	print "code $_\n" for grep { $state{$_} ne 'not yet' } @without;
	print 'spec ', scalar keys %spec, "\n", 'rows ', scalar keys %row, "\n";
	exit;
}
printf "%-22s %s\n", "spec: $_", join ' ', @{$spec{$_}} for sort keys %spec;
print "\n";
printf "%-14s %-8s %s; tests: %d\n", "row: $_", $state{$_}, join(' ', @{$row{$_}}), scalar keys %{$tested{$_} // {}}
	for sort by_id keys %row;
print "\n", 'rows without code: ', join(' ', @without), "\n",
	'rows that no test names: ', join(' ', grep { !$tested{$_} } sort by_id keys %state), "\n",
	'sections that no test cites: ', join(', ', grep { !grep { m{^tests/} } @{$spec{$_}} } sort keys %spec), "\n";
