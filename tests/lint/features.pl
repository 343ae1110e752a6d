#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Does doc/features.md tell the truth about its tests? Each id has one row; whatever a row names as a test is
# there; and what shows a row that works says so: its id stands in the text of each packet script (of one of them
# where the row has a pattern) and netns or vm script that the row names, and near each unit or scenario test.
use strict;
use warnings;
use File::Find;

my $page = shift // die "usage: features.pl PAGE\n";
my $FAMILIES = 'NTT|ENG|FAST|POOL|CONV';
my (%row, %said, @wrong, $number, $failed);

sub slurp
{
	open(my $f, '<', $_[0]) or return;
	local $/;
	return <$f>;
}

sub report
{
	my ($name, @findings) = @_;

	$number++;
	print @findings ? 'not ok' : 'ok', " $number - $name\n", map { "# $_\n" } @findings;
	$failed = 1 if @findings;
}

# ---- the page ----

my $text = slurp($page) // die "$page: $!\n";
my @unclear;

for my $line (split /\n/, $text) {
	next unless $line =~ /^\| *((?:$FAMILIES)-\d+) *\|/;
	my ($id, @cells) = ($1, split /\s*\|\s*/, $line);
	my ($state, $tests) = ($cells[3] // '', $cells[4] // '');

	push @wrong, "$id has more than one row" if $row{$id};
	push @unclear, "$id: the state must be works, retired, partly or not yet" unless $state =~ /^(works|retired|partly|not yet)\b/;
	$row{$id} = { works => scalar($state =~ /^works\b/), tests => $tests };
}
die "$page: no rows\n" unless %row;
while ($text =~ /\b((?:$FAMILIES)-\d+)\b/g) {
	$said{$1} = $page;
}

# ---- the tests: all that may name a row ----

my (%mentions, @files);

find({ no_chdir => 1, wanted => sub {
	return unless -f;
	push @files, $_ unless m{^tests/(?:data|fuzz/corpus|lint|selftest)/|\.md$};
} }, 'tests');
for my $f (@files) {
	my $t = slurp($f) // next;
	while ($t =~ /\b((?:$FAMILIES)-\d+)\b/g) {
		$mentions{$1}{$f} = 1;
		$said{$1} //= $f;
	}
}

sub by_id
{
	my ($x, $y) = map { [/(\w+)-(\d+)/] } $a, $b;
	return $x->[0] cmp $y->[0] || $x->[1] <=> $y->[1];
}

# "NTT-1 to 12": the rows that there must be
while ($text =~ /\b($FAMILIES)-1 to (\d+)\b/g) {
	$said{"$1-$_"} //= "the head of $page" for 1 .. $2;
}
report('every id has one row, and a state', @wrong, @unclear);
report('every id that is named has a row', map { "$said{$_}: $_ has none in $page" }
	grep { !$row{$_} } sort by_id keys %said);
report('every feature that works is named in tests/', map { "$_: not found" }
	grep { $row{$_}{works} && !$mentions{$_} } sort by_id keys %row);

# ---- what each row names ----

# The text of function NAME, with the comment before it.
sub function
{
	my ($t, $name) = @_;

	return $1 if $t =~ m{((?:^/\*(?:(?!\*/).)*\*/\n)?^[\w \t*]+\b\Q$name\E\((?:(?!^\}).)*^\})}sm;
	return;
}

my (@missing, @silent);

for my $id (sort by_id keys %row) {
	my $tests = $row{$id}{tests} =~ s/\([^()]*\)//gr;

	push @missing, "$id: names no test" if $row{$id}{works} && $tests !~ m{/};
	for my $group (split /\s*;\s*/, $tests =~ s/`[^`]*`//gr) {
		my $where;

		for my $name (split /\s*,\s*/, $group =~ s/:\s*/, /r) {
			$name =~ s/^(?:and )?\s*|\s.*$//g;
			next if $name eq '';
			if ($name =~ m{^(unit|scenario|bpf)/\w+$}) {
				$where = "tests/$name.c";
				push @missing, "$id: there is no $where" unless -e $where;
				push @silent, "$id: $where does not say so"
					if $row{$id}{works} && -e $where && !$mentions{$id}{$where};
			} elsif ($name =~ m{^(netns|vm)/\w+$}) {
				push @missing, "$id: there is no tests/$name.sh" unless -e "tests/$name.sh";
				push @silent, "$id: tests/$name.sh does not say so"
					if $row{$id}{works} && -e "tests/$name.sh" && !$mentions{$id}{"tests/$name.sh"};
			} elsif ($name =~ m{^model/(.*)$}) {
				push @missing, "$id: tests/model/variants has no $1"
					unless (slurp('tests/model/variants') // '') =~ /^\w+\s+\Q$1\E\b/m;
			} elsif ($name =~ m{^selftest/} || ($where // '') eq 'selftest') {
				my $base = $name =~ s{^selftest/}{}r;

				$where = 'selftest';
				push @missing, "$id: there is no tests/selftest/$base.fault"
					unless grep { -e } glob("tests/selftest/$base.fault");
			} elsif ($name =~ m{^scripts/} || $name =~ /^[a-z0-9*-]+$/) {
				# "scripts/a/b, c" names a/c, too
				my $dir = $name =~ m{^(.*)/} ? $1 : $where // 'scripts';
				my @found = glob('tests/scenario/' . ($name =~ m{/} ? $name : "$dir/$name") . '.pkt');

				@found = grep { -e } @found;
				$where = $dir;
				push @missing, "$id: there is no $name.pkt" unless @found;
				push @silent, "$id: $name.pkt does not say so"
					if $row{$id}{works} && @found && !grep { $mentions{$id}{$_} } @found;
			} elsif ($name =~ /^test_[\w*]+$/) {
				my $t = slurp($where // '') // '';
				my $re = $name =~ s/\*/\\w*/gr;
				my @functions = $t =~ /^static void ($re)\(/mg;

				push @missing, "$id: $where has no $name" unless @functions;
				push @silent, "$id: $where: $name does not say so" if $row{$id}{works} && @functions &&
					!grep { (function($t, $_) // '') =~ /\b$id\b/ } @functions;
			} else {
				push @missing, "$id: what is \"$name\"?";
			}
		}
	}
}
report('every test that a row names is there', @missing);
report('every test named for a feature that works says so', @silent);
print "1..$number\n";
exit($failed ? 1 : 0);
