#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Static analysis: clang-tidy (.clang-tidy) and gcc -fanalyzer over the product's sources, shellcheck (.shellcheckrc) over
# all scripts. Each finds nothing, or a comment in the code says why it is wrong there.
#
#	tests/lint/analyze.sh [all]
#
# A file in which a tool has found nothing is not looked at again until it, a header that it includes, the tool's version
# or its options change; $B/analyze keeps the hashes. Without "all" each tool looks at no more than MOST files that are
# left, first at those that the working tree or the latest commit changes. Other versions of a tool find other things, and
# then a check would fail on a new system for no change of ours: without "all" only the versions below are used.
#
# Before it looks at anything, each tool must find a planted fault.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
MOST=16
CLANG_TIDY=14
GCC=12
SHELLCHECK=0.9
FLAGS=(-std=gnu11 -O1 -D_GNU_SOURCE -Iproxyd "-I$B" -Ibpf -I. -fno-strict-aliasing)
# clang-tidy looks for these three as well. gcc 12 is wrong about them here: it does not see that a lane's state implies
# that its page exists (reads_of()), and takes what a parameter points to for leaked or uninitialised.
GCC_FLAGS=(-Werror -fdiagnostics-plain-output -Wno-analyzer-{null-dereference,malloc-leak,use-of-uninitialized-value})
BPF_FLAGS=(-O2 -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -Ibpf)
number=0 failed=0 all=${1:-} state=$B/analyze
work=$(mktemp -d "${TMPDIR:-/tmp}/analyze.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

mapfile -t sources < <(find proxyd cli bpf -name '*.c' | sort)
mapfile -t scripts < <(
	{
		find tests debian .ci -name '*.sh'
		grep -rlE '^#! ?/bin/(ba|busybox )?sh' tests debian .ci
	} | sort -u)
mapfile -t libraries < <(printf '%s\n' "${scripts[@]}" | grep '/lib\.sh$')
[ ${#sources[@]} -gt 100 ] && [ ${#scripts[@]} -gt 50 ] || { echo "Bail out! the sources are not here"; exit 1; }

# What was changed last: names of files; for a header, the first source that includes it
changed=" $({
	git diff --name-only --diff-filter=d HEAD~1 -- || git diff --name-only --diff-filter=d HEAD --
	git ls-files -o --exclude-standard
} 2>/dev/null | while read -r f; do
	case $f in
	*.h) grep -lE "#include \"(${f}|${f#*/})\"" "${sources[@]}" | head -n 1 ;;
	*) echo "$f" ;;
	esac
done | tr '\n' ' ')"

# Each of these looks at one file, and fails if it finds something
tidy()
{
	local flags=("${FLAGS[@]}") said status found

	[[ $1 != bpf/* ]] || flags=("${BPF_FLAGS[@]}")
	said=$(clang-tidy --quiet --config-file=.clang-tidy "$1" -- "${flags[@]}" 2>&1)
	status=$?
	echo "$said"
	# faults in what is generated into $B do not count
	found=$(grep -E '(warning|error):' <<<"$said" | grep -v "^$B/")
	[ $status = 0 ] || { [ $status = 1 ] && [ -z "$found" ] && grep -q "^$B/.*error:" <<<"$said"; }
}

analyzer()
{
	case $1 in
	bpf/*) ;; # gcc does not know its maps
	proxyd/daemon/replay.c) ;; # uthash's macros take it many minutes
	*) gcc -fanalyzer "${FLAGS[@]}" "${GCC_FLAGS[@]}" -c -o /dev/null "$1" ;;
	esac
}

shell()
{
	shellcheck -S warning -f gcc "$1"
}

# What the result depends on, by hash
inputs() # FILE
{
	local files

	case $1 in
	bpf/*) files=$(clang -MM "${BPF_FLAGS[@]}" "$1") ;;
	*.c) files=$(gcc -MM "${FLAGS[@]}" "$1") ;;
	*) files=": $1 .shellcheckrc ${libraries[*]}" ;;
	esac || return
	# shellcheck disable=SC2046 # words, without the target and the ends of lines
	sha256sum $(sed 's/^[^ ]*://; s/\\$//' <<<"$files") .clang-tidy tests/lint/analyze.sh
}

examine() # FUNCTION DIRECTORY FILE: prints what it finds, else remembers that it found nothing
{
	local name=${3//\//:} log=$work/$1.${3//\//:}

	inputs "$3" >"$log.inputs"
	if "$1" "$3" >"$log" 2>&1; then
		mv "$log.inputs" "$2/$name"
	else
		grep -E '(warning|error):' "$log" || { echo "$3:"; tail -n 3 "$log"; }
	fi
}

look() # NAME TOOL VERSION WANTED FUNCTION PLANTED FILE...
{
	local name=$1 tool=$2 version=$3 wanted=$4 function=$5 planted=$6 first=() later=() todo found f
	local dir=$state/$tool-$version

	shift 6
	number=$((number + 1))
	if [ -z "$version" ]; then
		echo "ok $number - $name # SKIP $tool is not installed (make lint-deps)"
		return
	elif [ "$all" != all ] && [[ $version != "$wanted"* ]]; then
		echo "ok $number - $name # SKIP needs $tool $wanted, here is $version (make analyze)"
		return
	elif "$function" "$planted" >/dev/null 2>&1; then
		echo "not ok $number - $name finds a planted fault"
		failed=1
		return
	fi
	mkdir -p "$dir"
	for f in "$@"; do
		if ! sha256sum --status -c "$dir/${f//\//:}" 2>/dev/null; then
			case $changed in
			*" $f "*) first+=("$f") ;;
			*) later+=("$f") ;;
			esac
		fi
	done
	todo=("${first[@]}" "${later[@]}")
	[ "$all" = all ] || todo=("${todo[@]:0:MOST}")
	found=$(
		for f in "${todo[@]}"; do
			while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
				wait -n
			done
			examine "$function" "$dir" "$f" &
		done
		wait)
	if [ -z "$found" ]; then
		echo "ok $number - $name finds nothing: ${#todo[@]} files now," \
			"$(($# - ${#first[@]} - ${#later[@]})) before," \
			"$((${#first[@]} + ${#later[@]} - ${#todo[@]})) not yet (make analyze)"
	else
		echo "not ok $number - $name finds something in ${#todo[@]} files"
		sort -u <<<"$found" | sed 's/^/# /'
		failed=1
	fi
}

printf '#include <stdlib.h>\nvoid planted(char *p);\nvoid planted(char *p)\n{\n\tfree(p);\n\tfree(p);\n}\n' >"$work/planted.c"
printf '#!/bin/bash\ncd /nowhere\nrm -rf x\n' >"$work/planted.sh"
look clang-tidy clang-tidy "$(clang-tidy --version 2>/dev/null | sed -n 's/.*version \([0-9.]*\).*/\1/p')" \
	$CLANG_TIDY. tidy "$work/planted.c" "${sources[@]}"
look "gcc -fanalyzer" gcc "$(gcc -dumpfullversion 2>/dev/null)" $GCC. analyzer "$work/planted.c" "${sources[@]}"
look shellcheck shellcheck "$(shellcheck --version 2>/dev/null | sed -n 's/^version: //p')" $SHELLCHECK. \
	shell "$work/planted.sh" "${scripts[@]}"
echo "1..$number"
exit $failed
