#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How the engine's files hang together, and who moves its marks. Theory of operation:
#
# The graph comes from the object files: nm names what each defines and what it needs; a file that needs a symbol
# of another one calls it. A strongly connected component is a set of files each of which reaches each other.
#
# A mark is a field of a struct, declared in a header in proxyd/engine with the one file that may write it:
#
#	struct mark una; /* mark: core/marks.h: ... */
#	uint32_t reached; /* mark: holes.c */
#
# A write is an assignment, ++ or -- of the field or of a part of it, and taking its address, unless the address
# goes to a parameter or a variable that is a pointer to const. The field counts only where it is reached through
# a variable, parameter or member that is declared as the struct which has it; so another struct may have a
# field of that name. Whole structs that are copied or cleared are not seen: that is how a lane begins.
#
#	engine.pl BUILD       writes lines "files N", "cycle N FILE ...", "marks N", "writers N", "outside WHERE"
use strict;
use warnings;
use File::Find;

my $build = shift // die "usage: engine.pl BUILD\n";
my $root = 'proxyd/engine';
my (@sources, @headers);

find({ no_chdir => 1, wanted => sub {
	push @sources, $_ if /\.c$/;
	push @headers, $_ if /\.h$/;
} }, $root);
@sources = sort @sources;
@headers = sort @headers;
die "no sources in $root\n" unless @sources;

sub slurp
{
	open(my $f, '<', $_[0]) or die "$_[0]: $!\n";
	local $/;
	return <$f>;
}

# ---- the graph ----

my (%defines, %needs, %edge);

for my $c (@sources) {
	my $o = "$build/" . ($c =~ s/c$/o/r);

	die "$o is missing or older than $c: run 'make B=$build'\n" unless -e $o && -M $o <= -M $c;
	open(my $nm, '-|', 'nm', '-g', $o) or die "nm: $!\n";
	while (<$nm>) {
		$needs{$c}{$1} = 1 if /^\s+U (\S+)$/;
		$defines{$2} = $c if /^\S+ ([A-TV-Z]) (\S+)$/;
	}
	close($nm) or die "nm $o failed\n";
}
for my $c (@sources) {
	for my $symbol (keys %{$needs{$c} // {}}) {
		my $to = $defines{$symbol};
		$edge{$c}{$to} = 1 if defined $to && $to ne $c;
	}
}

my (%index, %low, %on, @stack, @components, $next);

# Tarjan's algorithm.
sub connect_from
{
	my $v = shift;

	$index{$v} = $low{$v} = $next++;
	push @stack, $v;
	$on{$v} = 1;
	for my $w (sort keys %{$edge{$v} // {}}) {
		if (!defined $index{$w}) {
			connect_from($w);
			$low{$v} = $low{$w} if $low{$w} < $low{$v};
		} elsif ($on{$w} && $index{$w} < $low{$v}) {
			$low{$v} = $index{$w};
		}
	}
	return if $low{$v} != $index{$v};
	my (@component, $w);
	do {
		$w = pop @stack;
		$on{$w} = 0;
		push @component, $w;
	} while ($w ne $v);
	push @components, [sort @component];
}

$next = 0;
for my $c (@sources) {
	connect_from($c) unless defined $index{$c};
}
@components = sort { @$b <=> @$a } @components;
print 'files ', scalar @sources, "\n";
for my $c (@components) {
	last if @$c < 2 && $c != $components[0];
	print 'cycle ', scalar @$c, ' ', join(' ', map { s|^\Q$root\E/||r } @$c), "\n";
}

# ---- marks ----

# Comments become blanks, of as many characters and lines.
sub bare
{
	return $_[0] =~ s{(/\*.*?\*/|//[^\n]*)}{$1 =~ s/[^\n]/ /gr}gser;
}

my (@marks, %text, %members);

for my $h (@headers) {
	my (@open, @found);

	for my $line (split /\n/, slurp($h)) {
		my $code = $line =~ s{/\*.*}{}r;

		if ($line =~ m{^\t+(?:struct \w+|uint32_t) (\w+);\s+/\* mark: ([\w./-]+\.[ch])\b}) {
			push @marks, { name => $1, file => $2, at => $h, owner => undef, depth => scalar @open };
			push @found, $marks[-1];
		}
		if ($code =~ /^\s*(?:typedef )?(?:struct|union)(?: (\w+))? \{\s*$/) {
			push @open, $1;
		} elsif ($code =~ /^\s*(?:enum)\b.*\{\s*$/) {
			push @open, 'enum';
		} elsif ($code =~ /^\s*\}\s*(\w*)/ && @open) {
			my $tag = pop @open;
			my $owner = defined $tag ? "struct $tag" : $1 ne '' ? "member $1" : undef;

			for my $m (grep { !defined $_->{owner} && $_->{depth} == @open + 1 } @found) {
				$m->{owner} = $owner;
				$m->{depth}-- unless defined $owner; # an anonymous part of what is around it
			}
		}
	}
	for my $m (@found) {
		die "$h: mark $m->{name}: in no struct\n" unless defined $m->{owner};
		my @files = grep { m{(^|/)\Q$m->{file}\E$} } @sources, @headers;
		die "$h: mark $m->{name}: $root has " . (@files ? 'several' : 'no') . " $m->{file}\n" if @files != 1;
		$m->{file} = $files[0] =~ s|^\Q$root\E/||r;
	}
}

$text{$_} = bare(slurp($_)) for @sources, @headers;

# Names of variables, parameters and members that are of a struct or point to it, of each file and all headers.
sub named
{
	my ($struct, $text) = @_;
	my %names;

	while ($text =~ /\b\Q$struct\E\s+((?:\*\s*(?:const\s+)?)*\w+[^;(){}]*)/g) {
		my $list = $1 =~ s/=[^,]*//gr;
		$list =~ s/\[[^\]]*\]//g;
		# "struct lane *l, uint32_t x" ends at the first thing with a type of its own
		for my $d (split /,/, $list) {
			last unless $d =~ /^\s*(?:\*\s*(?:const\s+)?)*(\w+)\s*$/;
			$names{$1} = 1;
		}
	}
	return keys %names;
}

# Parameters of all functions: does parameter N of NAME point to const?
my %params;

for my $t (values %text) {
	while ($t =~ /^(?:[\w \t*]+?[ \t*])(\w+)\(([^;{}()]*)\)\s*[;{]/gm) {
		$params{$1} //= [split /,/, $2];
	}
}

# The function that the argument at @at is for, and its number.
sub argument_of
{
	my ($t, $at) = @_;
	my ($depth, $n) = (0, 0);

	for (my $i = $at - 1; $i >= 0; $i--) {
		my $c = substr($t, $i, 1);

		return if $c eq ';' || $c eq '{' || $c eq '}';
		$depth++ if $c eq ')';
		$n++ if $c eq ',' && !$depth;
		next if $c ne '(' || $depth-- > 0;
		return substr($t, 0, $i) =~ /(\w+)\s*$/ ? ($1, $n) : ();
	}
	return;
}

# Whether the address that is taken at @at in @t can be written through.
sub writable
{
	my ($t, $at) = @_;
	my ($function, $n) = argument_of($t, $at);
	my $before = substr($t, 0, $at);

	if (defined $function && $function !~ /^(?:if|while|for|switch|return|sizeof)$/) {
		my $p = $params{$function} ? $params{$function}[$n] : undef;
		return !(defined $p && $p =~ /^\s*const\b/);
	}
	$before = substr($before, ($before =~ /.*[;{}]/s) ? $+[0] : 0);
	return 0 if $before =~ /^\s*const\b[^=]*=/;
	return 0 if $before =~ /^\s*return\b/ && substr($t, 0, $at) =~ /.*^(\w[^\n]*)\(/sm && $1 =~ /\bconst\b/;
	return 1;
}

my ($most, @outside) = (0);

for my $m (@marks) {
	my %writers;
	my ($kind, $owner) = split / /, $m->{owner};
	my @members = $kind eq 'member' ? ($owner) : map { named("struct $owner", $text{$_}) } @headers;

	for my $f (@sources, @headers) {
		my @ids = $kind eq 'member' ? () : named("struct $owner", $text{$f});
		my $id = join '|', map { quotemeta } @ids;
		my $base = join '|', grep { $_ ne '' } $id && "(?<![\\w.>])(?:$id)(?:\\[[^\\]]*\\])?",
			@members && "(?:->|\\.)(?:" . join('|', map { quotemeta } @members) . ")(?:\\[[^\\]]*\\])?";
		next if $base eq '';
		my $field = "(?:$base)\\)?\\s*(?:->|\\.)\\s*$m->{name}\\b(?!\\s*\\()";
		my $t = $text{$f};

		while ($t =~ /$field/g) {
			my ($from, $end) = ($-[0], pos $t);
			my $after = substr($t, $end, 80);
			# to the beginning of the expression: l, fl->lane, e->flows[i].lane
			my $before = substr($t, 0, $from) =~ s/[\w\]\[.>-]*\(?$//r;

			$after =~ s/^(?:\s*\.\s*\w+)+//;
			next unless $after =~ m{^\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)} || $after =~ /^\s*(?:\+\+|--)/ ||
				$before =~ /(?:\+\+|--)\s*\(?$/ ||
				($before =~ /(?<!&)&\s*\(?$/ && $before !~ /[\w)\]]\s*&\s*\(?$/ &&
				 writable($t, length($before =~ s/&\s*\(?$//r)));
			my $line = 1 + (substr($t, 0, $from) =~ tr/\n//);
			my $short = $f =~ s|^\Q$root\E/||r;
			$writers{$short} = 1;
			push @outside, "$f:$line: $m->{name} is moved here; it is $m->{file}'s ($m->{at})"
				if $short ne $m->{file};
		}
	}
	$most = keys %writers if keys %writers > $most;
}
print 'marks ', scalar @marks, "\n";
print "writers $most\n";
print "outside $_\n" for @outside;
