# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build everything into build/
# make deps       install what is missing from Debian's packages (root)
# make check      the whole test suite (root: network namespaces, XDP)
# make demo       two data centres in network namespaces, bare and through longhaul (root)
# make bench      cost per packet, memory
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
CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SAN)
endif

# The layers, lowest first; each may include only those before it (tests/lint/layers.sh checks it).
CORE_DIRS := proxyd/wire proxyd/store proxyd/engine
CORE_SRC := $(wildcard $(addsuffix /*.c,$(CORE_DIRS)))
CORE_LIBS := -lisal -lxxhash
DAEMON_SRC := $(wildcard proxyd/peer/*.c proxyd/port/*.c proxyd/control/*.c)
# All but main() goes into libraries, so that tests can link it. The replay shows its table with the tool's
# renderer; the tool makes keys with the daemon's code.
MAIN_SRC := $(filter-out proxyd/main.c,$(wildcard proxyd/*.c)) cli/object.c cli/render.c
DAEMON_LIBS := $(CORE_LIBS) -lxdp -lbpf -lelf -lz -lev -lsodium -linih -ljansson -lpcap -lcap-ng -lseccomp -lsystemd -lm
CLI_SRC := $(filter-out cli/main.c,$(wildcard cli/*.c)) proxyd/peer/key.c
CLI_LIBS := -ljansson -lsodium
LAB_LIB_SRC := $(wildcard tests/lab/model/*.c)

obj = $(patsubst %.c,$(B)/%.o,$(1))

.PHONY: all
all: $(B)/longhauld $(B)/longhaul lab

$(B)/%.o: %.c
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

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

$(B)/longhaul: $(B)/cli/main.o $(B)/libcli.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

# The XDP program, compiled for the BPF machine and embedded as a skeleton.
$(B)/steer.bpf.o: bpf/steer.bpf.c bpf/steer.h
	$(call say,BPF,$<)mkdir -p $(@D) && $(CLANG) -O2 -g -Wall -Werror -target bpf \
		-I/usr/include/$(shell uname -m)-linux-gnu -Ibpf -c -o $@ $<

$(B)/steer.skel.h: $(B)/steer.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name steer_bpf > $@.tmp && mv $@.tmp $@

$(call obj,$(wildcard proxyd/port/*.c)): | $(B)/steer.skel.h
$(call obj,$(wildcard tests/bpf/*.c)): | $(B)/steer.skel.h

include tests/Makefile.inc

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf $(B)
