#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# layout.pl DIR "COMPILER FLAGS" FILE...: how the types of the memory that outlives a process are laid out
# (proxyd/engine/kept.h), as text: for each type its size, and the name, place and type of each member, or the names
# and values of an enumeration. Source text does not count: comments, order of declarations and names of typedefs may
# change. Compilers agree, and so do their options, but for those that change the ABI.
#
# The compiler says it, by the debug information of files that nothing else uses: one that includes all headers among
# FILE, and each source among them, for the types that are private to it. All types that these define are told of, but
# for those below, and what is a part of one. What a pointer points to is not: pointers are a process's own.
use strict;
use warnings;

# Types of which no object is ever kept. A type that is forgotten here does no harm.
my %passing = map { $_ => 1 } qw(frame build_spec cm cm_type crc32_fold crc32_consts crc32_kernel opcode_info
	frame_verdict storage_send storage_buffer storage_command storage_verdict storage_answer engine_event engine_event_type
	engine_left lane_info conn_info engine_memory link_info role_ops report pool_need names_verdict read_verdict
	resp_verdict announce_turn announce_answer proto_challenge proto_message proto_verdict session_info
	session_local seal_verdict replay_verdict peer_socket_stats
	owner_evidence owner_verdict owner_rule);

my ($dir, $compile, @files) = @ARGV;
my (%die, @todo, %told);

sub run # COMMAND: its lines
{
	open(my $in, '-|', $_[0]) or die "layout.pl: $_[0]: $!\n";
	my @lines = <$in>;
	close($in) or die "layout.pl: failed: $_[0]\n";
	return @lines;
}

# The entries of an object's debug information, by their offsets.
sub entries
{
	my @parent;
	my $at;

	%die = ();
	for (run("LC_ALL=C readelf -W --debug-dump=info '$_[0]'")) {
		if (/^\s*<(\w+)><(\w+)>: Abbrev Number: \d+ \((DW_TAG_\w+)\)/) {
			my $level = hex $1;

			$at = hex $2;
			$die{$at} = {tag => $3, sub => []};
			$parent[$level] = $at;
			push @{$die{$parent[$level - 1]}{sub}}, $at if $level;
		} elsif (/^\s*<(\w+)><(\w+)>: Abbrev Number: 0/) {
			undef $at;
		} elsif (defined $at && /^\s*<\w+>\s+DW_AT_(\w+)\s*:\s*(.*?)\s*$/) {
			$die{$at}{$1} = $2;
		}
	}
}

sub number
{
	my ($entry, $what) = @_;

	return undef unless defined $entry->{$what};
	$entry->{$what} =~ /^(?:\(\w+\)\s+)?<?(-?)(0x)?([0-9a-f]+)>?/ or
		die "layout.pl: what number is $what $entry->{$what}?\n";
	return ($2 ? hex $3 : $3) * ($1 ? -1 : 1);
}

sub name
{
	my $entry = shift;

	return undef unless defined $entry->{name};
	return $1 if $entry->{name} =~ /\): (\S+)$/;
	return $entry->{name} =~ s/^\(\w+\)\s+//r;
}

sub type_of
{
	my $entry = shift;

	return $die{number($entry, 'type')} if defined $entry->{type};
	return {tag => 'void', sub => []};
}

my %kinds = (structure => 'struct', union => 'union', enumeration => 'enum');
my %encodings = (2 => 'bool', 4 => 'float', 5 => 'int', 6 => 'int', 7 => 'unsigned', 8 => 'unsigned');

# A type as a member has it. A struct, union or enum with a name is told of by itself.
sub type
{
	my $t = shift;

	$t = type_of($t) while $t->{tag} =~ /_(typedef|const_type|volatile_type|atomic_type)$/;
	return 'pointer' if $t->{tag} =~ /_pointer_type$/;
	if ($t->{tag} =~ /_base_type$/) {
		my $encoding = $encodings{number($t, 'encoding')} or die "layout.pl: strange base type\n";

		return $encoding . 8 * number($t, 'byte_size');
	}
	if ($t->{tag} =~ /_array_type$/) {
		my $text = type(type_of($t));

		for my $range (map { $die{$_} } @{$t->{sub}}) {
			my $n = number($range, 'count');

			$n = number($range, 'upper_bound') + 1 if !defined $n && defined $range->{upper_bound};
			$text .= '[' . ($n // '') . ']';
		}
		return $text;
	}
	if ($t->{tag} =~ /^DW_TAG_(structure|union|enumeration)_type$/) {
		return body($t) unless defined name($t);
		push @todo, $t;
		return "$kinds{$1} " . name($t);
	}
	die "layout.pl: $t->{tag} as a member\n";
}

# Where a member begins, in bits. There are two ways to tell that of a bit field.
sub bit_of
{
	my $m = shift;
	my $at = 8 * (number($m, 'data_member_location') // 0);

	return $at + number($m, 'data_bit_offset') if defined $m->{data_bit_offset};
	return $at unless defined $m->{bit_offset};
	return $at + 8 * number($m, 'byte_size') - number($m, 'bit_offset') - number($m, 'bit_size');
}

sub body
{
	my $t = shift;
	my $text = '{';

	for my $m (map { $die{$_} } @{$t->{sub}}) {
		if ($m->{tag} eq 'DW_TAG_enumerator') {
			$text .= ' ' . name($m) . '=' . number($m, 'const_value');
		} elsif ($m->{tag} eq 'DW_TAG_member') {
			my $bits = number($m, 'bit_size');

			$text .= ' ' . bit_of($m) / 8 . ':' . (name($m) // '') . '=' . type(type_of($m));
			$text .= ":$bits" if defined $bits;
		}
	}
	return "$text }" . number($t, 'byte_size');
}

# What FILE defines at its outermost level, as the style has it.
sub defined_in
{
	my %names;

	for my $file (@_) {
		open(my $in, '<', $file) or die "layout.pl: $file: $!\n";
		while (<$in>) {
			$names{$2} = 1 if /^(struct|union|enum) (\w+) \{/ && !$passing{$2};
		}
	}
	return \%names;
}

# show SOURCE FILE...: the types that these files define, all of which SOURCE knows
sub show
{
	my ($source, @of) = @_;
	my $names = defined_in(@of);
	my $object = "$dir/layout.o";
	my %text;

	run("$compile -g -gdwarf-5 -O0 -w -fno-eliminate-unused-debug-types -c -o '$object' '$source'");
	entries($object);
	@todo = grep { $_->{tag} =~ /_(structure|union|enumeration)_type$/ && defined name($_) &&
			$names->{name($_)} && !defined $_->{declaration} } values %die;
	while (my $t = shift @todo) {
		my $kind = $kinds{$t->{tag} =~ s/^DW_TAG_(\w+)_type$/$1/r};
		my $what = "$kind " . name($t);

		next if defined $text{$what} || defined $t->{declaration};
		$text{$what} = '';
		$text{$what} = body($t);
	}
	for my $name (sort keys %$names) {
		die "layout.pl: $source: the compiler says nothing of $name\n"
			unless grep { defined $text{"$_ $name"} } qw(struct union enum);
	}
	for my $what (sort keys %text) {
		print "$what $text{$what}\n" unless $told{"$what $text{$what}"}++;
	}
	unlink $object;
}

my @headers = grep { /\.h$/ } @files;
my $all = "$dir/layout.all.c";

open(my $out, '>', $all) or die "layout.pl: $all: $!\n";
print $out map { "#include \"$_\"\n" } @headers;
close($out) or die "layout.pl: $all: $!\n";
show($all, @headers);
show($_, $_) for grep { /\.c$/ } @files;
