#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The runner of `make check`: every test program under a timeout, one line each as it ends, and as the very last line
#
#	N passed, N failed, N skipped
#
# There are two queues. Programs that compute run as many at once as there are processors, at a low priority. Beside
# them run tests with real daemons, one more than there are processors: these wait for timers and round trips most of
# their time, and must hold on a busy machine (tests/busy.sh). AT_ONCE=n says another number for both.
#
# Programs write TAP (cmocka is told to): "ok ...", "ok ... # SKIP ...", "not ok ...". One that ends badly
# without a failed test in its report, or reports nothing at all, counts as one that failed.
#
#	tests/run.sh [PART ...]    lint unit scenario bpf fuzz vm netns, and netns/NAME, scenario/NAME, threaded (what
#	                           starts threads); all but the last three without an argument
#
# B names the build directory. What each program wrote is in $B/check/. TIMES=n multiplies every time limit, for
# builds with sanitizers (SANITIZED=yes); a report of theirs, whichever process made it, counts as a failed test.
set -u
cd "$(dirname "$0")/.." || exit 1
export B=${B:-build}
out=$B/check
passed=0 failed=0 skipped=0
parts=${*:-scenario lint fuzz unit vm netns bpf} # what takes long first, and what is short last
current=
names=() computing=() waiting=()

trap '[ -z "$current" ] || kill "$current" 2>/dev/null; kill $(jobs -p) 2>/dev/null; exit 130' INT TERM HUP
mkdir -p "$out" || exit 1

say() # VERDICT NAME REST
{
	printf '%-5s %-34s %s\n' "$@"
}

# run NAME SECONDS COMMAND...
run()
{
	local name=$1 limit=$(($2 * ${TIMES:-1})) log status good bad skip note= t0 t1

	shift 2
	log=$out/${name//\//-}.log
	t0=$(date +%s%N)
	# in the background, so that a signal ends it, and us, at once
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null &
	current=$!
	wait $current
	status=$?
	current=
	t1=$(date +%s%N)
	# cmocka writes "not ok" where it skips
	skip=$(grep -cE '^(not )?ok .*# SKIP' "$log")
	good=$(grep -E '^ok ' "$log" | grep -vcE '# SKIP')
	bad=$(grep -E '^not ok ' "$log" | grep -vcE '# SKIP')
	if [ $status = 124 ] || [ $status = 137 ]; then
		note=", ended after $limit s"
		bad=$((bad + 1))
	elif [ $status != 0 ] && [ "$bad" = 0 ]; then
		note=", ended with status $status"
		bad=1
	elif [ $((good + bad + skip)) = 0 ]; then
		note=", no test ran"
		bad=1
	fi
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
	note="$good passed$([ "$bad" = 0 ] || echo ", $bad failed")$([ "$skip" = 0 ] || echo ", $skip skipped")$note"
	log=$(
		say "$([ "$bad" = 0 ] && echo ok || echo FAIL)" "$name" \
			"$note ($(((t1 - t0) / 1000000000)).$((((t1 - t0) / 100000000) % 10)) s)"
		[ "$bad" != 0 ] || exit 0
		grep -E -A 12 '^not ok ' "$log" | head -n 60 | sed 's/^/      /'
		tail -n 5 "$log" | sed 's/^/      | /'
	)
	echo "$log" # in one piece: others write, too
}

skip() # NAME REASON
{
	skipped=$((skipped + 1))
	say skip "$1" "$2"
}

# Into the queue of those that compute or of those that wait; gather runs both. No two programs share a name, a
# directory, a namespace or a port.
job() # NAME SECONDS COMMAND...
{
	names+=("$1")
	computing+=("$(printf '%q ' "$1" "$2" nice -n 5 "${@:3}")")
}

waits() # NAME SECONDS COMMAND...
{
	names+=("$1")
	waiting+=("$(printf '%q ' "$@")")
}

# Run a queue in its order, so many at once. Each program leaves its counts for gather; those that are missing are of a
# program that failed.
queue() # AT-ONCE JOB...
{
	local most=$1 one

	trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM HUP
	shift
	for one; do
		while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do
			wait -n
		done
		(
			trap '[ -z "$current" ] || kill "$current" 2>/dev/null; exit 130' INT TERM HUP
			passed=0 failed=0 skipped=0
			eval "run $one"
			name=${one%% *}
			echo "$passed $failed $skipped" >"$out/${name//\//-}.counts"
		) &
	done
	wait
}

# Run all that is queued, and count what it counted
gather()
{
	local name good bad skip

	queue "${AT_ONCE:-$(nproc)}" "${computing[@]}" &
	queue "${AT_ONCE:-$(($(nproc) + 1))}" "${waiting[@]}" &
	wait
	for name in "${names[@]}"; do
		if ! read -r good bad skip 2>/dev/null <"$out/${name//\//-}.counts"; then
			say FAIL "$name" "was ended before it had counted"
			good=0 bad=1 skip=0
		fi
		passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
	done
	rm -f "$out"/*.counts
}

# All programs $B/tests/PART/test_*, or the one named, SECONDS at most for each
cmocka() # QUEUE PART SECONDS [NAME]
{
	local t src

	for src in tests/"$2"/${4:-test_*}.c; do
		t=$(basename "$src" .c)
		"$1" "$2/$t" "$3" env CMOCKA_MESSAGE_OUTPUT=TAP "$B/tests/$2/$t"
	done
}

# All scripts tests/lint/*.sh
lint()
{
	local t

	for t in tests/lint/*.sh; do
		job "lint/$(basename "$t" .sh)" 400 "$t"
	done
}

# The corpus once more through a decoder under sanitizers; libFuzzer does not speak TAP
fuzz()
{
	local src t name corpus runs

	for src in tests/fuzz/fuzz_*.c; do
		t=$(basename "$src" .c)
		name=fuzz/${t#fuzz_}
		corpus=tests/fuzz/corpus/${t#fuzz_}
		runs=20000
		[ "$t" != fuzz_engine ] || runs=500 # each a life of an engine
		if [ ! -x "$B/fuzz/tests/fuzz/$t" ]; then
			skip "$name" "clang cannot build fuzzers here"
		else
			job "$name" 120 bash -c '
				dir=() n=0
				[ ! -d "$2" ] || { dir=("$2"); n=$(ls "$2" | wc -l); }
				# a few random inputs besides: the seed is fixed
				"$1" -runs="$4" -seed=1 -max_len=2048 -timeout=10 -print_final_stats=0 \
					"$3" "${dir[@]}" &&
				echo "ok 1 - corpus of $n inputs, $4 runs with random ones"' \
				fuzz "$B/fuzz/tests/fuzz/$t" "$corpus" "$(mktemp -d "$out/found.XXXXXX")" $runs
		fi
	done
}

# All scripts tests/netns/test_*.sh, those that take long first; or the one named
LONG=(shards path members verdict survive stop pair routed ports upgrade health readme operate overload prefetch other fence)
netns() # [NAME]
{
	local t tests=("tests/netns/${1:-}.sh")

	[ $# != 0 ] || mapfile -t tests < <(printf 'tests/netns/test_%s.sh\n' "${LONG[@]}" &&
		printf '%s\n' tests/netns/test_*.sh | grep -vE "_($(IFS='|'; echo "${LONG[*]}"))\.sh")
	for t in "${tests[@]}"; do
		if [ "$(id -u)" != 0 ]; then
			skip "netns/$(basename "$t" .sh)" "needs root"
		else
			waits "netns/$(basename "$t" .sh)" 600 "$t"
		fi
	done
}

if [ -n "${SANITIZED:-}" ]; then
	# where reports of processes whose output nobody reads are found, such as the daemons of the netns tests
	to=log_path=$(cd "$out" && pwd)/sanitizer
	export ASAN_OPTIONS=${ASAN_OPTIONS:-$to}
	export TSAN_OPTIONS=${TSAN_OPTIONS:-$to:suppressions=$PWD/tests/tsan.supp}
	export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:$to}
fi
rm -rf "$out"/found.* "$out"/sanitizer.* "$out"/*.counts
for part in $parts; do
	case $part in
	lint) lint ;;
	unit) cmocka job unit 240 ;;
	scenario) cmocka job scenario 600 ;;
	bpf)
		if [ "$(id -u)" = 0 ]; then
			cmocka waits bpf 240
		else
			skip bpf "needs root"
		fi
		;;
	fuzz) fuzz ;;
	netns) netns ;;
	vm)
		if [ "$(id -u)" = 0 ]; then
			waits vm/test_vm 600 tests/vm/test_vm.sh
		else
			skip vm/test_vm "needs root"
		fi
		;;
	threaded)
		for one in $(tests/lint/threads.sh programs); do
			one=${one#tests/}
			queue=job
			[ "${one%%/*}" != bpf ] || queue=waits
			if [ $queue = waits ] && [ "$(id -u)" != 0 ]; then
				skip "${one%.c}" "needs root"
			else
				cmocka $queue "${one%%/*}" 600 "$(basename "$one" .c)"
			fi
		done
		;;
	netns/*) netns "${part#netns/}" ;;
	scenario/*) cmocka job scenario 600 "${part#scenario/}" ;;
	*)
		echo "run.sh: unknown part '$part'; there are lint, unit, scenario, bpf, fuzz, vm, netns, threaded" >&2
		exit 2
		;;
	esac
done
gather
rm -rf "$out"/found.*
for report in "$out"/sanitizer.*; do
	[ -e "$report" ] || continue
	failed=$((failed + 1))
	say FAIL sanitizer "see $report"
	grep -m 3 -E 'ERROR|WARNING|runtime error|SUMMARY' "$report" | sed 's/^/      | /'
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
