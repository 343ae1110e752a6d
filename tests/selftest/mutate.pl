#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# All single-line mutations of the engine in the order in which SEED draws them:
#
#	mutate.pl SEED FILE ...
#
# One line on stdout for each: the file, its line, the kind, the old text and the new, separated by tabs. The order is
# that of a hash of SEED, the file's name, the kind, both texts and which of its like in that file it is: an edit of the
# engine leaves the order of all mutations that it does not touch. The kinds:
#
#	condition	if (a) becomes if (!(a)); a && b becomes a || b, and the reverse
#	bound		< becomes <=, and the reverse; > becomes >=, and the reverse
#	number		a decimal number in an expression becomes twice as much, 0 becomes 1
#	call		a statement that is only a call becomes empty
#
# Left out is what nobody could tell: another bound of a time, of bytes or of a share, or where the greater or the
# smaller of two is taken, another alignment of memory, an array that only grows, and another start of a hash.
use strict;
use warnings;
use Digest::MD5 'md5_hex';

my ($seed, @files) = @ARGV;
die "usage: mutate.pl SEED FILE ...\n" unless @files;
my @places;

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
	push @new, [call => ';'] if $line =~ /^\t+(?:\(void\))?[a-z]\w*\(.*\);$/;
	return @new;
}

# The line without the size of the array that it declares.
sub sizeless
{
	return shift =~ s/^(\t+(?:static )?(?:const )?(?:struct \w+|u?int\d+_t|bool|char|int) \w+)\[\d+\]/$1\[\]/r;
}

# Whether nobody could tell the new line from the old one.
sub same
{
	my ($kind, $old, $new) = @_;

	return $old =~ /= \{0\}|\bh = 0\b/ || sizeless($old) eq sizeless($new) || ($old =~ /arena_alloc\(.*, 64\);/ && $new !~ /, 64\);/)
		if $kind eq 'number';
	return $kind eq 'bound' && $old =~ /\bnow\b|_[nu]s\b|_[NU]S\b|(?i:bytes)|pool_fill|fabs|(\S+) [<>]=? (\S+) \? (\1 : \2|\2 : \1)\b/;
}

for my $file (@files) {
	open(my $in, '<', $file) or die "mutate.pl: $file: $!\n";
	my ($body, $comment, %like) = (0, 0);

	while (my $line = <$in>) {
		chomp $line;
		$body = 1 if $line eq '{';
		$body = 0 if $line eq '}';
		$comment = 1 if $line =~ m{^\s*/\*};
		for ($body && !$comment && $line !~ m{"|^#|^\s*case |/\*} ? mutations($line) : ()) {
			my ($kind, $old, $new) = ($_->[0], $line, $_->[1]);

			next if same($kind, $old, $new);
			s/^\s+//, s/\s+/ /g for $old, $new;
			my $what = join("\t", $kind, $old, $new);
			my $rank = md5_hex(join("\t", $seed, $file =~ s{.*/}{}r, $what, $like{$what}++));
			push @places, [$rank, "$file\t$.\t$what\n"];
		}
		$comment = 0 if $line =~ m{\*/};
	}
}
die "mutate.pl: nothing to mutate\n" unless @places;
print map { $_->[1] } sort { $a->[0] cmp $b->[0] } @places;
