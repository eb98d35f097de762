# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# `make help` lists the targets. Variables: BUILD (output directory), CC, CFLAGS, SANITIZE (a value
# for -fsanitize=), PREFIX, LIBDIR, DESTDIR, V=1 (show commands).

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

# `make asan` is `make test` with other settings.
ifneq ($(filter asan,$(MAKECMDGOALS)),)
SANITIZE ?= address,undefined
BUILD ?= build/asan
endif
ifneq ($(filter tsan,$(MAKECMDGOALS)),)
SANITIZE ?= thread
BUILD ?= build/tsan
endif

BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CFLAGS ?= $(if $(SANITIZE),-O1,-O3) -g
PKG_CONFIG ?= pkg-config

version := $(shell sed -n 's/^#define RFT_HOST_VERSION "\(.*\)"/\1/p' abi/include/rft/host.h)
soname := librft_host.so.$(firstword $(subst ., ,$(version)))
plugin_dir = $(LIBDIR)/rft/plugins
quiet := $(if $(V),,@)

# ------------------------------------------------------------------------------------------ flags

# Instrumented code makes gcc see overlaps and reads that are not there.
warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(SANITIZE),,-Werror)
sanitize := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)

# No contraction: results do not depend on whether the machine has fused multiply-add.
compile = $(CC) -std=gnu11 $(warnings) -ffp-contract=off -fno-math-errno -fno-trapping-math -pthread -MMD -MP \
  -Iabi/include -Iabi $(CPPFLAGS) $(module) $(CFLAGS) $(sanitize)
link = $(CC) $(CFLAGS) $(sanitize) -pthread $(LDFLAGS)

# Asked when a recipe runs: what they tell may be installed by then only.
cflags_of = $(shell $(PKG_CONFIG) --cflags $(1))
libs_of = $(shell $(PKG_CONFIG) --libs $(1))

# Run in place, and after `make install`.
find_host = -L$(BUILD) -lrft_host -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,'$$ORIGIN/../$(notdir $(LIBDIR))'

hardening := -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
# A sanitizer's runtime is in the program, not in the shared object.
no_undefined := $(if $(SANITIZE),,-Wl,-z,defs)

# ---------------------------------------------------------------------------------------- objects

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard $(1)))

support_objects := $(call objects,abi/support/*.c)
support := $(BUILD)/librft_support.a
host_objects := $(call objects,abi/host/*.c)
# rft check reads ELF files as librft_host does, which exports none of it.
cli_objects := $(call objects,abi/cli/*.c abi/check/*.c) $(BUILD)/obj/abi/host/elf_check.o
# The kernels are compiled once for each instruction set, by the flags that it takes.
machine_name := $(shell $(CC) -dumpmachine)
targets := baseline $(if $(filter x86_64%,$(machine_name)),avx2 avx512)
target_flags_baseline :=
target_flags_avx2 := -mavx2 -mfma
target_flags_avx512 := -mavx512f -mavx512dq -mavx512bw -mavx512vl
# Loops over the vectors of a step have to be unrolled, whatever CFLAGS say.
kernel_optimization := $(if $(SANITIZE),,-O3)
kernel_sources := $(wildcard plugin/kernel*.c)
kernels := $(foreach target,$(targets),$(kernel_sources:%.c=$(BUILD)/obj/%.$(target).o))
plugin_objects := $(call objects,$(filter-out $(kernel_sources),$(wildcard plugin/*.c))) $(kernels) \
  $(BUILD)/obj/embedded.o
trainer_objects := $(call objects,examples/trainer/*.c)
mpi_objects := $(call objects,examples/mpi/*.c)
mpi_test_objects := $(call objects,tests/mpi/*.c)
test_objects := $(call objects,tests/unit/*.c)
bench_objects := $(call objects,tests/bench/*.c)
fixtures := $(patsubst tests/fixtures/%.c,$(BUILD)/fixtures/%.so,$(wildcard tests/fixtures/*.c))
# Plugins with one fault each, and good ones built with the headers of each release.
conformance := $(BUILD)/conformance
host_fixtures := $(patsubst tests/conformance/host/%.c,$(conformance)/host/%.so, \
    $(wildcard tests/conformance/host/*.c)) \
  $(patsubst tests/conformance/layout/released/%,$(conformance)/host/built_with_%.so, \
    $(wildcard tests/conformance/layout/released/*))

# With a sanitizer only the good one: it is what the others are without their fault.
plugin_fixtures := $(patsubst tests/conformance/plugins/%.c,$(conformance)/plugins/%.so, \
  $(wildcard tests/conformance/plugins/$(if $(SANITIZE),good,*).c))

host := $(BUILD)/librft_host.so
plugin := $(BUILD)/plugins/libm2po_plugin.so
jansson := build/jansson/link

$(BUILD)/obj/abi/support/%.o: module = -fPIC -fvisibility=hidden
$(BUILD)/obj/abi/host/%.o: module = -fPIC -DRFT_PLUGIN_DIR='"$(plugin_dir)"'
$(BUILD)/obj/plugin/%.o: module = -fPIC -fvisibility=hidden
$(BUILD)/obj/embedded.o: module = -fPIC -fvisibility=hidden -Iplugin
# It stands in for malloc: the compiler may not know what malloc is.
$(BUILD)/obj/tests/bench/%.o: module = -fPIC -fvisibility=hidden -fno-builtin
$(BUILD)/obj/examples/trainer/%.o: module = $(call cflags_of,openblas jansson yaml-0.1)
$(BUILD)/obj/tests/unit/%.o: module = $(call cflags_of,criterion openblas jansson yaml-0.1 gmp) \
  -iquote examples/trainer -iquote plugin \
  -DRFT_TEST_BUILD_DIR='"$(abspath $(BUILD))"' \
  -DRFT_TEST_PLUGIN_DIR='"$(abspath $(BUILD)/plugins)"' \
  -DRFT_TEST_FIXTURE_DIR='"$(abspath $(BUILD)/fixtures)"' \
  -DRFT_TEST_DATA_DIR='"$(abspath tests/vectors)"'

$(BUILD)/obj/%.o: %.c $(BUILD)/settings | machine
	@echo '  CC      $<'
	@mkdir -p $(@D)
	$(quiet)$(compile) -c -o $@ $<

define kernel_rule
$(BUILD)/obj/%.$(1).o: %.c $(BUILD)/settings | machine
	@echo '  CC      $$< for $(1)'
	@mkdir -p $$(@D)
	$$(quiet)$$(compile) $$(kernel_optimization) -DM2PO_TARGET=$(1) $$(target_flags_$(1)) -c -o $$@ $$<
endef
$(foreach target,$(targets),$(eval $(call kernel_rule,$(target))))

$(BUILD)/obj/embedded.o: $(BUILD)/gen/embedded.c $(BUILD)/settings | machine
	@echo '  CC      $<'
	@mkdir -p $(@D)
	$(quiet)$(compile) -c -o $@ $<

# Of MPI's header our warnings have no business to know.
mpi_cflags = $(patsubst -I%,-isystem %,$(call cflags_of,ompi-c))
$(BUILD)/obj/examples/mpi/%.o: module = $(mpi_cflags) $(call cflags_of,jansson) \
  -iquote examples/trainer
$(BUILD)/obj/tests/mpi/%.o: module = $(mpi_cflags) $(call cflags_of,jansson) -iquote examples/mpi

# Everything is compiled anew when a setting changes.
settings = $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(sanitize) $(plugin_dir)
$(BUILD)/settings: force
	@mkdir -p $(@D)
	@echo '$(settings)' | cmp -s - $@ || echo '$(settings)' > $@

-include $(wildcard $(patsubst %.o,%.d,$(support_objects) $(host_objects) $(cli_objects) \
  $(plugin_objects) $(trainer_objects) $(mpi_objects) $(mpi_test_objects) $(test_objects) \
  $(bench_objects)) \
  $(patsubst %.so,%.d,$(fixtures) $(host_fixtures) $(plugin_fixtures)))

# --------------------------------------------------------------------------------------- products

.PHONY: all
all: $(host) $(plugin) $(BUILD)/rft $(BUILD)/rft-train

# What a package of another language brings along.
.PHONY: libraries
libraries: $(host) $(plugin)

# An archive: each product takes what it uses.
$(support): $(support_objects)
	@echo '  AR      $@'
	$(quiet)rm -f $@
	$(quiet)$(AR) rcs $@ $^

$(host): $(host_objects) $(support) abi/host/librft_host.map
	@echo '  LINK    $@'
	$(quiet)$(link) -shared -Wl,-soname,$(soname) -Wl,--version-script,abi/host/librft_host.map \
	  $(no_undefined) $(hardening) -o $@.$(version) $(filter %.o %.a,$^) -ljansson -ldl -lm
	$(quiet)ln -sf $(@F).$(version) $(BUILD)/$(soname)
	$(quiet)ln -sf $(@F).$(version) $@

$(plugin): $(plugin_objects) $(support) plugin/plugin.map $(jansson)
	@echo '  LINK    $@'
	@mkdir -p $(@D)
	$(quiet)$(link) -shared -Wl,--version-script,plugin/plugin.map -Wl,--exclude-libs,ALL \
	  -Wl,--as-needed -Wl,--gc-sections $(no_undefined) $(hardening) \
	  -o $@ $(filter %.o %.a,$^) @$(jansson) -lm

$(BUILD)/rft: $(cli_objects) $(support) $(host)
	@echo '  LINK    $@'
	$(quiet)$(link) -o $@ $(filter %.o %.a,$^) $(find_host) -ljansson -ldl -lm

$(BUILD)/rft-train: $(trainer_objects) $(support) $(host)
	@echo '  LINK    $@'
	$(quiet)$(link) -o $@ $(filter %.o %.a,$^) $(find_host) \
	  $(call libs_of,jansson yaml-0.1 openblas) -lm

# The kernels are tested by themselves, too: the plugin exports none of them.
$(BUILD)/test-unit: $(test_objects) $(support) $(host) \
  $(filter-out %/main.o,$(trainer_objects)) \
  $(kernels) $(filter %/target.o %/tally.o %/exact.o,$(plugin_objects))
	@echo '  LINK    $@'
	$(quiet)$(link) -o $@ $(filter %.o %.a,$^) $(find_host) \
	  $(call libs_of,criterion jansson yaml-0.1 openblas gmp) -ldl -lm

# With Open MPI, which nothing else needs.
mpi_programs := $(addprefix $(BUILD)/,rft-evaluate-mpi rft-train-mpi rft-simulate-ranks test-mpi)
mpi_common := $(filter %/mpi_collectives.o %/ranks.o,$(mpi_objects))

$(BUILD)/rft-evaluate-mpi: $(BUILD)/obj/examples/mpi/evaluate.o \
  $(filter-out %/main.o,$(cli_objects))
$(BUILD)/rft-train-mpi: $(filter %/train.o %/mpi_group.o %/check.o,$(mpi_objects)) \
  $(filter-out %/main.o,$(trainer_objects))
$(BUILD)/rft-simulate-ranks: $(BUILD)/obj/examples/mpi/simulate.o
$(BUILD)/test-mpi: $(mpi_test_objects)
$(mpi_programs): $(mpi_common) $(support) $(host)
	@echo '  LINK    $@'
	$(quiet)$(link) -o $@ $(filter %.o,$^) $(support) $(find_host) \
	  $(call libs_of,ompi-c jansson yaml-0.1 openblas) -lm

# Preloaded into the benchmark.
bench_library := $(BUILD)/bench/libbench.so
$(bench_library): $(bench_objects)
	@echo '  LINK    $@'
	@mkdir -p $(@D)
	$(quiet)$(link) -shared $(no_undefined) $(hardening) -o $@ $^

.PHONY: mpi
mpi: all $(mpi_programs)

$(BUILD)/fixtures/%.so: tests/fixtures/%.c $(BUILD)/settings | machine
	@echo '  CC      $<'
	@mkdir -p $(@D)
	$(quiet)$(compile) -fPIC -shared -o $@ $<

$(conformance)/host/%.so: tests/conformance/host/%.c $(BUILD)/settings | machine
	@echo '  CC      $<'
	@mkdir -p $(@D)
	$(quiet)$(compile) -fPIC -shared -o $@ $<

# Linked as a plugin is; what a fixture adds to that says the line "flags:" in it, and an export list
# of its own beside it.
$(conformance)/plugins/%.so: tests/conformance/plugins/%.c $(support) plugin/plugin.map $(jansson) \
  $(BUILD)/settings | machine
	@echo '  CC      $<'
	@mkdir -p $(@D)
	$(quiet)$(compile) -Wno-unused-function -fPIC -fvisibility=hidden -shared \
	  -Wl,--version-script,$(firstword $(wildcard $(<:.c=.map)) plugin/plugin.map) \
	  -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--gc-sections $(no_undefined) $(hardening) \
	  -o $@ $< $(support) @$(jansson) -lm \
	  $(shell sed -n 's,^// flags: ,,p' $<)

$(conformance)/host/built_with_%.so: tests/fixtures/good.c $(BUILD)/settings | machine
	@echo '  CC      $< with the headers of $*'
	@mkdir -p $(@D)
	$(quiet)$(CC) -std=c11 -Itests/conformance/layout/released/$* $(CFLAGS) $(sanitize) \
	  -fPIC -shared -o $@ $<

# The config schema and the presets are files; the plugin carries them as text.
embedded := plugin/config.schema.json $(sort $(wildcard presets/*.json))
$(BUILD)/gen/embedded.c: $(embedded) plugin/embed.sh
	@mkdir -p $(@D)
	$(quiet)plugin/embed.sh $(embedded) > $@.tmp
	$(quiet)mv $@.tmp $@

# Position-independent, for the plugin; the same archive for all builds.
$(jansson): plugin/jansson.sh | machine
	@echo '  BUILD   jansson'
	$(quiet)CC='$(CC)' plugin/jansson.sh $(@D)

# ------------------------------------------------------------------------------------------- jobs

# What the goals need of the machine: jobs install it, a plain build only says what is missing.
jobs := $(filter deps demo mpi test test-hosts bench study study-llm conformance asan tsan lint,$(MAKECMDGOALS))
products := $(if $(filter-out libraries,$(or $(MAKECMDGOALS),all)),build,libraries)
.PHONY: machine
machine:
	@CC='$(CC)' .ci/deps.sh $(if $(jobs),--install) $(products) $(jobs)

.PHONY: deps
deps: machine

.PHONY: demo
demo: all
	$(quiet)examples/trainer/demo.sh $(BUILD)

.PHONY: test asan tsan
test: all mpi $(BUILD)/test-unit fixtures
	$(quiet)BUILD='$(abspath $(BUILD))' CC='$(CC)' SANITIZE='$(SANITIZE)' tests/run
asan tsan: test

# In environments of their own, build/venv-*: several GB, made by the first run.
.PHONY: test-hosts
test-hosts: libraries
	$(quiet)BUILD='$(abspath $(BUILD))' tests/hosts/run $(HOSTS)

# BENCH=quick: one size, one thread. In the environment build/venv-torch, made by the first run.
BENCH ?= full
.PHONY: bench
bench: libraries $(bench_library)
	$(quiet)BUILD='$(abspath $(BUILD))' tests/bench/bench.sh $(BENCH)

# STUDY=quick: seconds; STUDY=addition: one experiment; STUDY=report: of the runs that are there. What
# was interrupted goes on.
STUDY ?= all
.PHONY: study
study: all
	$(quiet)python3 examples/study/study.py $(BUILD) $(STUDY)

# A language model, in the environment build/venv-llm, made by the first run.
.PHONY: study-llm
study-llm: all
	$(quiet)BUILD='$(abspath $(BUILD))' examples/study_llm/study.sh '$(STUDY)'

.PHONY: fixtures
fixtures: $(fixtures) $(host_fixtures) $(plugin_fixtures)

.PHONY: conformance
conformance: all fixtures
	$(quiet)BUILD='$(abspath $(BUILD))' CC='$(CC)' SANITIZE='$(SANITIZE)' \
	  tests/run tests/conformance/*.sh

.PHONY: lint
lint: $(BUILD)/gen/embedded.c | machine
	$(quiet).ci/lint.sh

# What plugins are built with: the support code, and the jansson that it needs.
support_headers := $(addprefix abi/support/,batch_view.h element.h error.h schema.h structs.h \
  token_mean.h view.h)
own_jansson = $(wildcard $(dir $(jansson))libjansson.a)
fill_in = sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(version),' \
  -e 's,@JANSSON@,$(if $(own_jansson),-lrft_jansson,-ljansson),' $(1)

.PHONY: install
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/rft/support \
	  $(DESTDIR)$(plugin_dir) $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 abi/include/rft/*.h $(DESTDIR)$(PREFIX)/include/rft
	install -m 755 $(BUILD)/rft $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(host).$(version) $(DESTDIR)$(LIBDIR)
	ln -sf librft_host.so.$(version) $(DESTDIR)$(LIBDIR)/$(soname)
	ln -sf $(soname) $(DESTDIR)$(LIBDIR)/librft_host.so
	install -m 755 $(plugin) $(DESTDIR)$(plugin_dir)
	install -m 644 $(support_headers) $(DESTDIR)$(PREFIX)/include/rft/support
	install -m 644 $(support) $(DESTDIR)$(LIBDIR)
	$(if $(own_jansson),install -m 644 $(own_jansson) $(DESTDIR)$(LIBDIR)/librft_jansson.a)
	$(call fill_in,abi/host/rft_host.pc.in) > $(DESTDIR)$(LIBDIR)/pkgconfig/rft_host.pc
	$(call fill_in,abi/support/rft_plugin.pc.in) > $(DESTDIR)$(LIBDIR)/pkgconfig/rft_plugin.pc

.PHONY: uninstall
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/rft $(DESTDIR)$(LIBDIR)/librft_host.so* \
	  $(DESTDIR)$(LIBDIR)/librft_support.a $(DESTDIR)$(LIBDIR)/librft_jansson.a \
	  $(DESTDIR)$(plugin_dir)/libm2po_plugin.so $(DESTDIR)$(LIBDIR)/pkgconfig/rft_host.pc \
	  $(DESTDIR)$(LIBDIR)/pkgconfig/rft_plugin.pc
	rm -rf $(DESTDIR)$(PREFIX)/include/rft

.PHONY: clean
clean:
	rm -rf $(BUILD)

.PHONY: help
help:
	@echo 'make             build everything under $(BUILD)/'
	@echo 'make libraries   only librft_host and the plugin'
	@echo 'make demo        set the machine up, build, train with the plugin, draw the result'
	@echo 'make test        set the machine up, build, run all tests'
	@echo 'make mpi         what runs over many processes, with Open MPI: examples/mpi'
	@echo 'make conformance our plugin, the template and the host against the rules of abi/README.md'
	@echo 'make test-hosts  the adapters inside the real frameworks; HOSTS=verl: of one'
	@echo 'make bench       the plugin beside the memory floor and others in torch; BENCH=quick: under a minute'
	@echo 'make study       many training runs with the C trainer, tables, plots; STUDY=quick: seconds'
	@echo 'make study-llm   the same question for a language model of 135 million parameters'
	@echo 'make asan, tsan  the tests under AddressSanitizer and UBSan, under ThreadSanitizer'
	@echo 'make lint        clang-format, clang-tidy, cppcheck'
	@echo 'make deps        only set the machine up'
	@echo 'make install     to PREFIX ($(PREFIX)), below DESTDIR; make uninstall takes it back'
	@echo 'make clean       remove $(BUILD)/'

.PHONY: force
force:
.DELETE_ON_ERROR:
