#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Break a copy of a source file on purpose:
#
#	apply.pl FAULT OUTDIR
#
# FAULT is a text of the form
#
#	# what is broken
#	file proxyd/engine/near/pseudo_responder.c
#	<<<<
#	lines as they stand in the file
#	====
#	lines to stand there instead
#	>>>>
#
# with any number of changes, and of files. The old lines must stand in the file exactly once: a fault that no
# longer applies is an error, not a fault that nobody finds. Where lines are broken does not count. The
# broken copies go to OUTDIR under their own names; each one is named on stdout.
use strict;
use warnings;

my ($fault, $out) = @ARGV;
my (%text, @order, $file, $part, @old, @new);

# The pattern of some lines, wherever they are broken and however indented.
sub lines
{
	return join('\s+', map { s/(\W)/\\$1/gr } split(' ', join("\n", @_)));
}

sub slurp
{
	open(my $f, '<', $_[0]) or die "$fault: $_[0]: $!\n";
	local $/;
	return <$f>;
}

open(my $in, '<', $fault) or die "$fault: $!\n";
while (my $line = <$in>) {
	chomp $line;
	if ($line eq '<<<<') {
		die "$fault:$.: no file named\n" unless defined $file;
		($part, @old, @new) = ('old');
	} elsif ($line eq '====' && defined $part) {
		$part = 'new';
	} elsif ($line eq '>>>>' && defined $part) {
		my $re = lines(@old);
		my $new = join("\n", @new);
		my $n = ($text{$file} =~ s/$re/$new/g) || 0;
		die "$fault:$.: the old lines stand in $file $n times, not once\n" unless $n == 1;
		undef $part;
	} elsif (defined $part) {
		push @{$part eq 'old' ? \@old : \@new}, $line;
	} elsif ($line =~ /^file (\S+)$/) {
		$file = $1;
		push @order, $file unless exists $text{$file};
		$text{$file} //= slurp($file);
	} elsif ($line !~ /^#|^\s*$|^(options|world|by) /) {
		die "$fault:$.: not understood\n";
	}
}
die "$fault: changes nothing\n" unless @order;
for my $f (@order) {
	my $name = "$out/" . ($f =~ s|.*/||r);
	open(my $o, '>', $name) or die "$name: $!\n";
	print $o $text{$f};
	close($o) or die "$name: $!\n";
	print "$name\n";
}
