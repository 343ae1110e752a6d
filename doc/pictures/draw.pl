#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Pictures of what `make bench-wan` measured, for README.md: `make pictures`.
#
#	draw.pl RESULT FOLDER
#
# RESULT is what bench_wan wrote, with lines '# ...' before it that say when and of what; the first of them stands
# under each picture. Writes FOLDER/goodput-over-distance.svg and goodput-over-loss.svg. The same result gives the same
# bytes, so tests/lint/pictures.sh can tell whether the pictures are those of the numbers.
use strict;
use warnings;

my ($W, $H) = (640, 360);
my ($LEFT, $RIGHT, $TOP, $BOTTOM) = (52, 168, 44, 74);
my $LOSS_RTT = 20;    # ms, of the picture over loss
my %COLOUR = (WRITE => '#1f5fbf', READ => '#b8500f');

die "usage: draw.pl RESULT FOLDER\n" unless @ARGV == 2;
my ($file, $folder) = @ARGV;

# %share: share of the payload ceiling in %, by operation, round trip, loss and who
my (%share, $made);
open(my $in, '<', $file) or die "draw.pl: $file: $!\n";
while (<$in>) {
	if (/^# (.*)/) {
		$made //= $1;
	} elsif (/^(WRITE|READ) +(\d+) ms +([0-9.e-]+) +[\d.]+ +([\d.]+)% +[\d.]+ +([\d.]+)%/) {
		@{$share{$1}{$2}{$3 + 0}}{'bare', 'longhaul'} = ($4, $5);
	}
}
close($in);
die "draw.pl: $file: no first line '# when, of what'\n" unless defined $made;

sub y_of { $TOP + ($H - $TOP - $BOTTOM) * (1 - $_[0] / 100) }
sub text
{
	my ($x, $y, $anchor, $size, $text, $more) = @_;

	$text =~ s/&/&amp;/g;
	return sprintf qq{<text x="%.0f" y="%.0f" text-anchor="%s" font-size="%d"%s>%s</text>\n}, $x, $y, $anchor, $size,
		$more // '', $text;
}

# Ends of lines that are near each other keep their labels apart, and above the axis.
sub apart
{
	my ($last, $lowest) = (-100, y_of(0));
	my @labels = sort { $a->{y} <=> $b->{y} } @_;

	for my $label (@labels) {
		$label->{y} = $last + 14 if $label->{y} < $last + 14;
		$last = $label->{y};
	}
	for my $label (reverse @labels) {
		$label->{y} = $lowest if $label->{y} > $lowest;
		$lowest = $label->{y} - 14;
	}
}

# draw NAME TITLE X-AXIS TICKS: TICKS is a list of [label, second label or '', sub of an operation: its shares]
sub draw
{
	my ($name, $title, $axis, @ticks) = @_;
	my $step = ($W - $LEFT - $RIGHT) / (@ticks - 1);
	my $svg = qq{<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $W $H" width="$W" height="$H" } .
		qq{font-family="sans-serif" fill="#222222">\n} .
		qq{<!-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause -->\n} .
		qq{<title>$title</title>\n<rect width="$W" height="$H" fill="#ffffff"/>\n};
	my @labels;

	$svg .= text($LEFT, 22, 'start', 14, $title, ' font-weight="bold"');
	for my $y (0, 25, 50, 75, 100) {
		$svg .= sprintf qq{<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>\n}, $LEFT, y_of($y), $W - $RIGHT,
			y_of($y);
		$svg .= text($LEFT - 6, y_of($y) + 4, 'end', 11, "$y %");
	}
	for my $i (0 .. $#ticks) {
		$svg .= text($LEFT + $i * $step, y_of(0) + 16, 'middle', 11, $ticks[$i][0]);
		$svg .= text($LEFT + $i * $step, y_of(0) + 30, 'middle', 10, $ticks[$i][1], ' fill="#666666"') if $ticks[$i][1];
	}
	$svg .= text($LEFT + ($W - $LEFT - $RIGHT) / 2, y_of(0) + 46, 'middle', 11, $axis);
	$svg .= text($LEFT, $H - 6, 'start', 10, $made, ' fill="#666666"');
	for my $who ('longhaul', 'bare') {
		for my $op ('WRITE', 'READ') {
			my @at = map { my $v = $ticks[$_][2]->($op)->{$who};
				       die "draw.pl: $file: no $op at $ticks[$_][0]\n" unless defined $v;
				       [$LEFT + $_ * $step, y_of($v)] } 0 .. $#ticks;

			$svg .= sprintf qq{<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>\n}, $COLOUR{$op},
				$who eq 'bare' ? ' stroke-dasharray="5 4"' : '', join ' ', map { sprintf '%.1f,%.1f', @$_ } @at;
			$svg .= join '', map { sprintf qq{<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>\n}, @$_, $COLOUR{$op} } @at;
			push @labels, {y => $at[-1][1] + 4, op => $op, text => $op . ($who eq 'bare' ? ', bare' : ', longhaul')};
		}
	}
	apart(@labels);
	$svg .= text($W - $RIGHT + 8, $_->{y}, 'start', 12, $_->{text}, qq{ fill="$COLOUR{$_->{op}}"}) for @labels;
	open(my $out, '>', "$folder/$name.svg") or die "draw.pl: $folder/$name.svg: $!\n";
	print $out $svg, "</svg>\n";
	close($out) or die "draw.pl: $folder/$name.svg: $!\n";
}

my @rtts = sort { $a <=> $b } keys %{$share{WRITE} // {}};
my @losses = sort { $a <=> $b } keys %{$share{WRITE}{$LOSS_RTT} // {}};
die "draw.pl: $file: not what bench_wan --read writes\n" unless @rtts > 1 && @losses > 1;

draw('goodput-over-distance', 'Share of a 10 Gbit/s link that data fills, without loss',
	'round trip of the link (and the fibre that takes it)',
	map { my $rtt = $_; [$rtt . ' ms', $rtt * 100 . ' km', sub { $share{$_[0]}{$rtt}{0} // {} }] } @rtts);
draw('goodput-over-loss', "Share of a 10 Gbit/s link that data fills, at $LOSS_RTT ms",
	'packets that the link loses',
	map { my $loss = $_; [($loss ? $loss * 100 : 0) . ' %', '', sub { $share{$_[0]}{$LOSS_RTT}{$loss} // {} }] } @losses);
