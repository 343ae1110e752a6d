#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Engines in several threads share nothing that is written: all state is in the arena of each. So no object file of
# wire/, store/ and engine/ has writable data, but for what is named here, and none calls what keeps state in the C
# library. Compilers name a static variable of a function NAME.N, or FUNCTION.NAME.
. "$(dirname "$0")/report.inc"

B=${B:-build}
CC=${CC:-gcc}
DIRS=(proxyd/wire proxyd/store proxyd/rate proxyd/rule proxyd/engine)
# Made before main(), and read from then on; a hook of tests. It only ever gets shorter.
WRITABLE=(
	proxyd/wire/crc32.o:crc32_consts
	proxyd/wire/crc32.o:kernel
	proxyd/wire/crc32.o:mul
	proxyd/engine/core/stream_parity.o:factors
	proxyd/store/undo.o:undo_watch
)
STATEFUL='s?random|s?rand|[dejlmn]rand48|s(eed|rand)48|strtok|str(error|signal)|setlocale|localtime|gmtime|ctime|asctime'
STATEFUL+='|inet_ntoa|ether_(ntoa|aton)|getenv|setenv|putenv|getpw(nam|uid)|getgr(nam|gid)|gethostby(name|addr)|getservby.*'
STATEFUL+='|basename|dirname|ttyname|readdir|crypt|tmpnam|hcreate|hsearch|l?gamma[fl]?|[ef]cvt|ptsname|getopt(_long)?|syslog'

out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT

# Writable variables of the object file $1. What is only relocated (.data.rel.ro) is not writable any more when main()
# begins.
writable()
{
	objdump -t "$1" | perl -ne 'my ($section, $name) = /^[0-9a-f]+ .{7} (\S+)\t[0-9a-f]+ +(?:\.hidden )?(\S+)$/ or next;
		print "$name\n" if $name ne $section && $section =~ /^(\.l?t?(data|bss)|\*COM\*)/ && $section !~ /^\.data\.rel\.ro/'
}

plain()
{
	sed 's/\.[0-9]*$//; s/^.*\.//'
}

# Functions with state that the object file $1 calls
stateful()
{
	nm -u "$1" | awk '{ print $NF }' | sed 's/@.*//' | grep -xE "$STATEFUL"
}

cat >"$out/try.c" <<'END'
#include <stdlib.h>
const char *const names[] = {"a", "b"};
static const int table[] = {1, 2};
static int filled = 1;
int *where = &filled;
__thread int own;
int common;
int f(int);
int f(int n)
{
	static int lazy;

	filled = n;
	lazy += *where + table[n] + rand();
	return lazy;
}
END
found=$($CC -O1 -fPIC -fcommon -c -o "$out/try.o" "$out/try.c" 2>&1 &&
	{ writable "$out/try.o" | plain | sort | tr '\n' ' '; stateful "$out/try.o"; })
report "what is written is seen, what is constant is not" \
	"$([ "$found" = "common filled lazy own where rand" ] || echo "of the sample was seen: $found")"

mapfile -t sources < <(find "${DIRS[@]}" -name '*.c' | sort)
[ ${#sources[@]} -gt 50 ] || { echo "Bail out! the sources are not here"; exit 1; }
old='' seen=() calls=()
for c in "${sources[@]}"; do
	o=${c%.c}.o
	if [ ! -e "$B/$o" ] || [ "$c" -nt "$B/$o" ]; then
		old+="$B/$o is missing or older than $c: run 'make B=$B'"$'\n'
		continue
	fi
	mapfile -t -O ${#seen[@]} seen < <(writable "$B/$o" | plain | sed "s|^|$o:|")
	mapfile -t -O ${#calls[@]} calls < <(stateful "$B/$o" | sed "s|^|$c calls |")
done
report "all object files are there" "${old%$'\n'}"
report "engines share nothing that is written, but for ${#WRITABLE[@]} variables" \
	"$(comm -23 <(printf '%s\n' "${seen[@]}" | sort -u) <(printf '%s\n' "${WRITABLE[@]}" | sort))"
[ -n "$old" ] || report "all of these are still there" \
	"$(comm -13 <(printf '%s\n' "${seen[@]}" | sort -u) <(printf '%s\n' "${WRITABLE[@]}" | sort))"
report "engines call nothing that keeps state in the C library" "$(printf '%s\n' "${calls[@]}")"
summary
