# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build everything into build/
# make deps       install what is missing of Debian's packages (root)
# make check      the whole test suite (root: network namespaces, XDP)
# make check-vm   the whole matrix of tests/vm: guests with soft-RoCE, bare and through longhaul (root, long)
# make check-san  unit, scenario, bpf and netns tests under ASan and UBSan; check-tsan: whatever starts threads, under TSan
# make attack     third parties, overload and bad clients against real daemons in network namespaces (root)
# make check-busy netns and vm tests, 20 times (RUNS=) beside two busy processes: whether they hang on the clock
# make demo       two data centres in network namespaces, bare and through longhaul (root)
# make check-ui   metrics by promtool and prometheus, the status page in Chromium (root)
# make lint       layers, style, doc/features.md against the tests, how the engine's files hang together, analysis of what changed
# make analyze    clang-tidy, gcc -fanalyzer, shellcheck over everything
# make coverage   which share of proxyd's lines unit tests and packet scripts run, by folder
# make bench      cost per packet, memory
# make pictures   the README's, drawn from doc/pictures/bench-wan.txt; pictures-new: make bench-wan into that file first
# make bench-scale  what many connections cost each other
# make bench-shards  what two engines in two threads do, against one (QUICK=1: are all packets right?)
# make bench-wan, bench-link: goodput over distance and loss; links that are shared, lanes that begin (QUICK=1, CELL=NAME)
# make bench-real  throughput of real daemons on real clocks, against bare hosts and plain forwarders (root, 6 minutes)
# make bench-learn  queue pairs in step from PSN 0: how soon they are learned, and whether rightly (QUICK=1)
# make bench-storage  storage commands over distance: an initiator's writes, a target's READs (QUICK=1)
# make fuzz       each fuzzer for SECONDS=60
# make model      models of the rules, every run of them within bounds, by spin
# make soak       random scenario worlds for SECONDS=60
# make soak-crash the same for SECONDS=60, engines killed at any instruction
# make soak-selftest, scripts-selftest: the engine with one rule broken at a time; soak and scripts must notice
# make install    into prefix=/usr, DESTDIR in front of it; make uninstall
# make deb        Debian packages, in build/deb; make check-deb: installed, upgraded and purged in Debian 12 and 13 (root)
# make check-contrib: contrib/: the OCI image in containers, the Ansible role in a Debian (root)
# make check-systemd: the unit under a real systemd: killed, restarted, upgraded, its port lost (root)
# V=1 shows commands; B=dir builds elsewhere; SAN=address,undefined adds sanitizers; CC=clang works too.

B ?= build
V ?= 0
ifeq ($(V),0)
Q := @
say = @printf '  %-8s%s\n' '$(1)' '$(2)';
MAKEFLAGS += --no-print-directory
else
Q :=
say :=
endif

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(shell command -v bpftool) /usr/sbin/bpftool)
OPT ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
CFLAGS += -std=gnu11 $(OPT) $(WARN) -fno-strict-aliasing
CPPFLAGS += -D_GNU_SOURCE -Iproxyd -I$(B) -Ibpf -I. -MMD -MP
ifneq ($(SAN),)
# gcc guesses wrong about instrumented code; the plain build has the last word on warnings
CFLAGS += -fsanitize=$(SAN) -Wno-error -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SAN)
endif

# The layers, lowest first; each may include only those before it (tests/lint/layers.sh checks it).
CORE_DIRS := proxyd/wire proxyd/store proxyd/rate proxyd/rule proxyd/engine $(addprefix proxyd/engine/,number core owner learn fault reads prefetch announce link far near)
CORE_SRC := $(wildcard $(addsuffix /*.c,$(CORE_DIRS)))
CORE_LIBS := -lisal -lxxhash -lsodium -lm
DAEMON_SRC := $(wildcard proxyd/shards/*.c proxyd/peer/*.c proxyd/port/*.c proxyd/control/*.c)
# All but main() goes into libraries, so that tests can link it. The replay shows its table with the tool's
# renderer, and a reload is asked for by its client; the tool makes keys, and reads values, with the daemon's code.
MAIN_SRC := $(wildcard proxyd/config/*.c proxyd/host/*.c proxyd/daemon/*.c) cli/object.c cli/render.c cli/client.c
DAEMON_LIBS := $(CORE_LIBS) -lxdp -lbpf -lelf -lz -lev -linih -ljansson -lpcap -lcap-ng -lseccomp -lsystemd
CLI_SRC := $(filter-out cli/main.c,$(wildcard cli/*.c)) proxyd/peer/key.c proxyd/config/config_value.c
CLI_LIBS := -ljansson -lisal -lsodium -lncurses -ltinfo -lm
# Metrics and the status page: a process of its own, beside the daemon.
METRICS_SRC := $(wildcard cli/metrics/*.c) cli/client.c
METRICS_LIBS := -lmicrohttpd -ljansson -lcap-ng -lsystemd -lpthread -lm
# For hosts, not for appliances; only where rdma-core's headers are.
PROBE_SRC := $(wildcard cli/probe/*.c)
PROBE_LIBS := -lrdmacm -libverbs
PROBE := $(if $(wildcard /usr/include/rdma/rdma_cma.h),$(B)/longhaul-probe)
# The emulator of a WAN. Tests use it, and its model of a link; it needs no library.
WANEM_SRC := $(wildcard cli/wanem/*.c)
LAB_LIB_SRC := $(wildcard tests/lab/model/*.c) $(filter-out %/main.c,$(WANEM_SRC))

obj = $(patsubst %.c,$(B)/%.o,$(1))

.PHONY: all
all: product lab

$(B)/%.o: %.c
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Which memory an engine can take over from one before it (proxyd/engine/kept.h): that of the same layout, which
# layout.txt tells, and layout.h in short.
LAYOUT_SRC := $(sort $(wildcard $(addsuffix /*.h,$(CORE_DIRS) proxyd/peer) proxyd/store/*.c) proxyd/daemon/daemon_kept.h)
LAYOUT_CC = $(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) -std=gnu11
layout = mkdir -p $(@D) && proxyd/layout.pl $(@D) '$(1)' $(LAYOUT_SRC) >$(@D)/layout.txt && \
	printf '\043define LONGHAUL_LAYOUT 0x%sull\n' "$$(sha256sum <$(@D)/layout.txt | cut -c1-16)" >$@.tmp && mv $@.tmp $@
$(B)/layout.h: proxyd/layout.pl $(LAYOUT_SRC) $(wildcard proxyd/config/*.h proxyd/port/*.h)
	$(call say,LAYOUT,$@)$(call layout,$(LAYOUT_CC))

$(B)/proxyd/engine/create.o: | $(B)/layout.h

$(B)/libcore.a: $(call obj,$(CORE_SRC))
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(B)/libdaemon.a: $(call obj,$(DAEMON_SRC))
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(B)/libmain.a: $(call obj,$(MAIN_SRC))
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(B)/libcli.a: $(call obj,$(CLI_SRC))
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(B)/longhauld: $(B)/proxyd/main.o $(B)/libmain.a $(B)/libdaemon.a $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)

$(B)/longhaul: $(B)/cli/main.o $(B)/libcli.a $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

$(B)/longhaul-metrics: $(call obj,$(METRICS_SRC))
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(METRICS_LIBS)

# It also runs in the guests of tests/vm: no sanitizer's library there.
$(B)/longhaul-probe: $(PROBE_SRC) cli/probe/link.h
	$(call say,CC,$@)mkdir -p $(@D) && $(CC) $(CPPFLAGS) -MF $@.d $(filter-out -fsanitize=% -fno-sanitize%,$(CFLAGS)) \
		$(filter-out -fsanitize=%,$(LDFLAGS)) -o $@ $(PROBE_SRC) $(PROBE_LIBS)

$(B)/longhaul-wanem: $(call obj,$(WANEM_SRC))
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ -lm

# The XDP program, compiled for the BPF machine and embedded as a skeleton.
$(B)/steer.bpf.o: bpf/steer.bpf.c bpf/steer.h
	$(call say,BPF,$<)mkdir -p $(@D) && $(CLANG) -O2 -g -Wall -Werror -target bpf \
		-I/usr/include/$(shell uname -m)-linux-gnu -Ibpf -c -o $@ $<

$(B)/steer.skel.h: $(B)/steer.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name steer_bpf > $@.tmp && mv $@.tmp $@

$(call obj,$(wildcard proxyd/port/*.c)): | $(B)/steer.skel.h
$(call obj,$(wildcard tests/bpf/*.c)): | $(B)/steer.skel.h

include tests/Makefile.inc

# Debian's packages, by names that are the same in 12 and 13: compilers and libraries, then what tests and demo
# run. clang is for the XDP program and the fuzzers.
DEPS := gcc libc6-dev linux-libc-dev clang libclang-rt-dev bpftool libbpf-dev libxdp-dev libelf-dev zlib1g-dev \
	libisal-dev libxxhash-dev libev-dev libsodium-dev libinih-dev libjansson-dev libpcap-dev libcap-ng-dev \
	libseccomp-dev libsystemd-dev libncurses-dev libmicrohttpd-dev uthash-dev libcmocka-dev libibverbs-dev librdmacm-dev iproute2 ethtool jq perl-base

.PHONY: deps
deps:
	$(Q)missing=; \
	command -v dpkg-query >/dev/null || \
		{ echo "make deps: no dpkg-query here; install by hand what stands for: $(DEPS)" >&2; exit 0; }; \
	for p in $(DEPS); do \
		dpkg-query -W -f '$${Status}\n' $$p 2>/dev/null | grep -q ' installed$$' || missing="$$missing $$p"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	[ "$$(id -u)" = 0 ] || { echo "make deps: missing packages:$$missing; run 'make deps' as root" >&2; exit 1; }; \
	echo "  APT     $$missing"; \
	{ apt-get -qq update || true; } </dev/null && \
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $$missing </dev/null

# What tests/vm needs besides: the emulator, and what runs in the guests; and tshark, for the dissector's test. Where
# that is not to be had these tests are skipped, and say so.
VM_DEPS := qemu-system-x86 busybox-static perftest rdmacm-utils ibverbs-utils ibverbs-providers \
	kmod cpio xz-utils tshark ucx-utils libfabric-bin

.PHONY: vm-deps
vm-deps: deps
	$(Q)$(MAKE) DEPS='$(VM_DEPS)' deps || echo "make: without these packages the tests in guests are skipped" >&2

# What finds faults in text, for lint and analyze; where one is not to be had its check is skipped, and says so.
LINT_DEPS := clang-format clang-tidy shellcheck

.PHONY: lint-deps
lint-deps: deps
	$(Q)$(MAKE) DEPS='$(LINT_DEPS)' deps || echo "make: without these packages some checks of lint are skipped" >&2

# What `make model` needs besides.
MODEL_DEPS := gcc libc6-dev spin

.PHONY: model-deps
model-deps:
	$(Q)$(MAKE) DEPS='$(MODEL_DEPS)' deps

# What tests of metrics and of the page need besides; where one is not to be had its tests are skipped, and say so.
UI_DEPS := prometheus chromium libjs-chart.js curl jq tshark

.PHONY: ui-deps
ui-deps: deps
	$(Q)$(MAKE) DEPS='$(UI_DEPS)' deps || echo "make: without these packages tests of the metrics are skipped" >&2

# Packages first, whatever -j says; then everything is built by a make of its own.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: check demo bench
check: deps vm-deps
	$(Q)$(MAKE) lint-deps
	$(Q)$(MAKE) $(JOBS) all tests fuzzers vm-programs
	$(Q)B=$(B) tests/run.sh

.PHONY: check-vm
check-vm: deps vm-deps
	$(Q)$(MAKE) DEPS='fio tcpdump wireguard-tools' deps
	$(Q)$(MAKE) $(JOBS) all vm-programs
	$(Q)good=yes; \
	B=$(B) tests/vm/survive.sh || good=no; \
	B=$(B) tests/vm/bond.sh || good=no; \
	B=$(B) tests/vm/encrypted.sh || good=no; \
	B=$(B) tests/vm/zerocopy.sh || good=no; \
	B=$(B) tests/vm/storage.sh || good=no; \
	B=$(B) tests/vm/workloads.sh || good=no; \
	B=$(B) tests/vm/matrix.sh || good=no; \
	[ $$good = yes ]

.PHONY: check-busy
check-busy: deps vm-deps
	$(Q)$(MAKE) $(JOBS) all tests vm-programs
	$(Q)B=$(B) tests/busy.sh $(or $(RUNS),20)

# The same under sanitizers, in builds of their own. They slow everything down by several times, so time limits are
# longer; hosts and WAN of the netns tests are played by the plain build, or they would be too slow to be true;
# and the daemons' sandbox, which knows nothing of a sanitizer's run-time, is off.
# TSan finds races between threads only: check-tsan builds and runs the test programs that start threads (THREADED),
# daemons with one and with two cores, and bench-shards. lint/threads.sh says who may start threads.
.PHONY: check-san check-tsan
check-san: deps
	$(Q)$(MAKE) $(JOBS) lab
	$(Q)$(MAKE) $(JOBS) B=$(B)/san SAN=address,undefined OPT='-O2 -g' all tests
	$(Q)B=$(B)/san LAB_BIN=$(B)/lab TIMES=10 SANITIZED=yes tests/run.sh unit scenario bpf netns

check-tsan: deps
	$(Q)$(MAKE) $(JOBS) lab
	$(Q)$(MAKE) $(JOBS) B=$(B)/tsan SAN=thread OPT='-O1 -g' product threaded
	$(Q)B=$(B)/tsan LAB_BIN=$(B)/lab TIMES=10 SANITIZED=yes setarch -R tests/run.sh netns/test_shards netns/test_pair threaded
	$(Q)TSAN_OPTIONS=suppressions=tests/tsan.supp setarch -R $(B)/tsan/tests/bench/bench_shards --quick

# Daemons killed, handed over and upgraded at random while hosts are at work (root). EVENTS: so many in all.
.PHONY: survive
survive: deps
	$(Q)$(MAKE) $(JOBS) all tests
	$(Q)B=$(B) EVENTS=$(or $(EVENTS),170) tests/survive.sh

.PHONY: check-ui
check-ui: ui-deps
	$(Q)$(MAKE) $(JOBS) all
	$(Q)B=$(B) tests/ui.sh

demo: deps
	$(Q)[ "$$(id -u)" = 0 ] || { echo "make demo: needs root: network namespaces and XDP; try sudo make demo" >&2; exit 1; }
	$(Q)$(MAKE) $(JOBS) all
	$(Q)B=$(B) tests/netns/demo.sh

# ATTACK: only these cases, by file name.
.PHONY: attack
attack: deps
	$(Q)$(MAKE) $(JOBS) all
	$(Q)B=$(B) tests/attack/run.sh $(ATTACK)

bench: $(BENCH_BIN)
	$(Q)for t in $(filter-out $(BENCH_SCALE_BIN) $(BENCH_SHARDS_BIN),$(BENCH_BIN)); do $$t || exit 1; done

prefix ?= /usr
sbindir ?= $(prefix)/sbin
bindir ?= $(prefix)/bin
mandir ?= $(prefix)/share/man
unitdir ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d
completiondir ?= $(prefix)/share/bash-completion/completions
multiarch ?= $(shell $(CC) -print-multiarch)
wiresharkdir ?= $(prefix)/lib/$(multiarch)/wireshark/plugins
sysconfdir ?= /etc
datadir ?= $(prefix)/share/longhaul

# What `make install` installs and `make uninstall` removes: mode, file, where.
INSTALL_LIST := \
	755:$(B)/longhauld:$(sbindir)/longhauld \
	755:$(B)/longhaul:$(sbindir)/longhaul \
	755:$(B)/longhaul-metrics:$(sbindir)/longhaul-metrics \
	755:$(B)/longhaul-wanem:$(sbindir)/longhaul-wanem \
	$(if $(PROBE),755:$(PROBE):$(bindir)/longhaul-probe) \
	$(foreach m,$(wildcard man/*.5),644:$(m):$(mandir)/man5/$(notdir $(m))) \
	$(foreach m,$(wildcard man/*.8),644:$(m):$(mandir)/man8/$(notdir $(m))) \
	644:$(B)/longhauld.service:$(unitdir)/longhauld.service \
	644:$(B)/longhaul-metrics.service:$(unitdir)/longhaul-metrics.service \
	$(foreach f,$(wildcard cli/metrics/page/*),644:$(f):$(datadir)/page/$(notdir $(f))) \
	644:conf/longhaul.rules.yml:$(datadir)/longhaul.rules.yml \
	644:conf/longhaul-dashboard.json:$(datadir)/longhaul-dashboard.json \
	644:systemd/longhauld.sysusers:$(sysusersdir)/longhauld.conf \
	644:systemd/longhauld.tmpfiles:$(tmpfilesdir)/longhauld.conf \
	644:conf/longhaul.bash-completion:$(completiondir)/longhaul \
	644:conf/longhauld.bash-completion:$(completiondir)/longhauld \
	644:conf/longhaul.lua:$(wiresharkdir)/longhaul.lua \
	644:conf/longhaul.conf:$(sysconfdir)/longhaul/longhaul.conf.sample

.PHONY: product install uninstall
product: $(B)/longhauld $(B)/longhaul $(B)/longhaul-metrics $(B)/longhaul-wanem $(PROBE)

# A configuration that is there already is left alone; the sample is installed beside it in any case. The user that
# the unit wants is made where it can be: not for a DESTDIR, and only by root.
install: product
	$(Q)sed 's|/usr/sbin/|$(sbindir)/|' systemd/longhaul-metrics.service >$(B)/longhaul-metrics.service
	$(Q)sed 's|/usr/sbin/|$(sbindir)/|; s|/etc/longhaul/|$(sysconfdir)/longhaul/|' systemd/longhauld.service \
		>$(B)/longhauld.service
	$(call say,INSTALL,$(DESTDIR)$(prefix))echo $(INSTALL_LIST) | tr ' :' '\n ' | \
		while read -r mode file to; do install -D -m $$mode $$file $(DESTDIR)$$to || exit; done
	$(Q)[ -e $(DESTDIR)$(sysconfdir)/longhaul/longhaul.conf ] || \
		install -m 644 conf/longhaul.conf $(DESTDIR)$(sysconfdir)/longhaul/longhaul.conf
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ! command -v systemd-sysusers >/dev/null || \
		systemd-sysusers $(sysusersdir)/longhauld.conf

# The operator's configuration and keys stay.
uninstall:
	$(call say,REMOVE,$(DESTDIR)$(prefix))echo $(INSTALL_LIST) | tr ' :' '\n ' | \
		while read -r mode file to; do rm -f $(DESTDIR)$$to || exit; done
	$(Q)[ ! -d $(DESTDIR)$(sysconfdir)/longhaul ] || rmdir $(DESTDIR)$(sysconfdir)/longhaul 2>/dev/null || \
		echo "  LEFT    $(DESTDIR)$(sysconfdir)/longhaul: your configuration and keys"

# Debian packages, in $(B)/deb: built from a copy of the tree, as this machine's Debian builds. See debian/.
DEB_DEPS := build-essential debhelper dh-apparmor dpkg-dev lintian

.PHONY: deb deb-deps
deb-deps: deps
	$(Q)$(MAKE) DEPS='$(DEB_DEPS)' deps

deb: deb-deps
	$(Q)B=$(B) tests/deb/build.sh

.PHONY: check-deb
check-deb:
	$(Q)$(MAKE) DEPS='debootstrap dpkg-dev' deps
	$(Q)B=$(B) tests/deb/check.sh $(SUITES)

# Podman and what else they need is not installed for them: what is missing they say.
.PHONY: check-contrib
check-contrib: deb
	$(Q)$(MAKE) DEPS=debootstrap deps
	$(Q)$(MAKE) $(JOBS) all
	$(Q)good=yes; \
	for t in tests/contrib/test_*.sh; do B=$(B) $$t || good=no; done; \
	[ $$good = yes ]

.PHONY: check-systemd
check-systemd: product $(OTHER_BIN)
	$(Q)$(MAKE) DEPS=debootstrap deps
	$(Q)B=$(B) tests/systemd.sh
-include $(shell find $(B) -path $(B)/deb -prune -o -name '*.d' -type f -print 2>/dev/null)

.PHONY: clean
clean:
	rm -rf $(B)
