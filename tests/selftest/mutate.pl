#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Draw one single-line mutation of the engine:
#
#	mutate.pl SEED OUTDIR FILE ...
#
# Of all the places in FILE ... that can be mutated, SEED picks one. The mutated copy goes to OUTDIR under its own name.
# On stdout: that copy, the file, its line, and what has changed, separated by tabs. The kinds of mutations:
#
#	condition	if (a) becomes if (!(a)); a && b becomes a || b, and the reverse
#	bound		< becomes <=, and the reverse; > becomes >=, and the reverse
#	number		a decimal number in an expression becomes twice as much, 0 becomes 1
#	call		a statement that is only a call is removed
#
# Nothing is drawn where nobody could tell the difference: at the bound of a time, of bytes or of a share, where the
# greater or the smaller of two is taken, at the alignment of memory, where an array only grows, and where a hash begins.
use strict;
use warnings;

my ($seed, $out, @files) = @ARGV;
die "usage: mutate.pl SEED OUTDIR FILE ...\n" unless @files;
my (%text, @places);

# The places of one line as pairs of a kind and the new line.
sub mutations
{
	my $line = shift;
	my @new;

	if ($line =~ /^(\t+(?:\} else )?if \()(.*)(\)(?: \{)?)$/ && ($2 =~ tr/(//) == ($2 =~ tr/)//)) {
		push @new, [condition => "$1!($2)$3"];
	}
	while ($line =~ / (&&|\|\|)(?= |$)/g) {
		my $at = $-[1];
		push @new, [condition => substr($line, 0, $at) . ($1 eq '&&' ? '||' : '&&') . substr($line, $at + 2)];
	}
	while ($line =~ / (<=?|>=?) /g) {
		my ($op, $at) = ($1, $-[1]);
		my $other = length $op == 2 ? substr($op, 0, 1) : "$op=";
		push @new, [bound => substr($line, 0, $at) . $other . substr($line, $at + length $op)];
	}
	while ($line =~ /(?<![\w.])(\d+)(?=[uUlL]*\b)(?![\w.]*x)/g) {
		push @new, [number => substr($line, 0, $-[1]) . (2 * $1 || 1) . substr($line, $+[1])];
	}
	push @new, [call => ''] if $line =~ /^\t+(?:\(void\))?[a-z]\w*\(.*\);$/;
	return @new;
}

# The line without the size of the array that it declares.
sub sizeless
{
	return shift =~ s/^(\t+(?:static )?(?:const )?(?:struct \w+|u?int\d+_t|bool|char|int) \w+)\[\d+\]/$1\[\]/r;
}

for my $file (@files) {
	open(my $in, '<', $file) or die "mutate.pl: $file: $!\n";
	my @lines = <$in>;
	my ($body, $comment) = (0, 0);

	chomp @lines;
	$text{$file} = \@lines;
	for my $i (0 .. $#lines) {
		my $line = $lines[$i];

		$body = 1 if $line eq '{';
		$body = 0 if $line eq '}';
		$comment = 1 if $line =~ m{^\s*/\*};
		if ($body && !$comment && $line !~ m{"|^#|^\s*case |/\*}) {
			push @places, [$file, $i, @$_] for mutations($line);
		}
		$comment = 0 if $line =~ m{\*/};
	}
}
die "mutate.pl: nothing to mutate\n" unless @places;
srand($seed);
my ($file, $i, $kind, $new) = @{$places[int rand @places]};
my $old = $text{$file}[$i];

exit 1 if $kind eq 'number' && ($old =~ /= \{0\}|\bh = 0\b/ || sizeless($old) eq sizeless($new) || ($old =~ /arena_alloc\(.*, 64\);/ && $new !~ /, 64\);/));
exit 1 if $kind eq 'bound' && $old =~ /\bnow\b|_[nu]s\b|_[NU]S\b|bytes|pool_fill|fabs|(\S+) [<>]=? (\S+) \? (\1 : \2|\2 : \1)\b/;
my $copy = "$out/" . ($file =~ s{.*/}{}r);

$text{$file}[$i] = $new;
open(my $to, '>', $copy) or die "mutate.pl: $copy: $!\n";
print $to map { "$_\n" } @{$text{$file}};
close($to) or die "mutate.pl: $copy: $!\n";
s/^\s+// for $old, $new;
print join("\t", $copy, $file, $i + 1, "$kind: $old" . ($kind eq 'call' ? '' : "  ->  $new")), "\n";
