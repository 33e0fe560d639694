# Isomer. No configure step: `make` builds into build/, `make check` builds and runs the tests; both need what
# `bash .ci/install` installs. `make help` lists the targets.
#   TORCH=0   leave out what needs libtorch          B=DIR       build into DIR
#   SAN=...   sanitizer flags, SAN=-fsanitize=...    CC=clang    another compiler
ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin CXX),default)
CXX = g++
endif
CLANG ?= clang
B ?= build
TORCH ?= 1
OPT ?= -O2 -g
SECS ?= 60
WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
# What gcc accepts and clang does not is shown, but stops nobody.
ifneq ($(findstring clang,$(CC)),)
WARN += -Wno-error
endif
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS += -std=c11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -MMD -MP $(SAN)
CXXFLAGS_TORCH = -std=c++17 -O2 -g -fPIC -Wall -Wno-unused-parameter -MMD -MP $(TORCH_CXXFLAGS)
LDFLAGS += $(SAN)
# libz3 is loaded when a proof needs it (validate/prove/z3_lazy.h), under the name by which programs linked with it would find it.
Z3_SONAME := $(or $(shell objdump -p "$$($(CC) -print-file-name=libz3.so)" 2>/dev/null | sed -n 's/ *SONAME *//p'),libz3.so)
LIBS = -ljansson -lminizip -lz -lxxhash -lnettle -ldl -lm -lpthread
# Samples are evaluated in many digits where MPFR is there (validate/precise/precise_int.h); without it rules that need that are unknown.
LIBS += $(if $(shell echo '\#include <mpfr.h>' | $(CC) -E - >/dev/null 2>&1 && echo yes),-lmpfr) -lgmp
# AddressSanitizer looks for the C++ library when a program starts, and what libtorch throws goes through it.
ifneq ($(findstring address,$(SAN)),)
LIBS += -Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state
endif

FOLDERS = egraph rules capture validate synth localise check lint
LIB_SRC := $(sort $(wildcard $(foreach d,$(FOLDERS),$(d)/*.c $(d)/*/*.c $(d)/*/*/*.c)))
CLI_SRC := $(sort $(wildcard cli/*.c cli/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)
EGRAPH_OBJ := $(filter $(B)/obj/egraph/%,$(LIB_OBJ))
SUPPORT_SRC := $(wildcard tests/support/*.c)
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/obj/%.o)

# Test programs: tests/**/test_*.c use Check, tests/*/example.c are the headers' examples, and tests/fuzz/fuzz_*.c are
# run on their corpora. With TORCH=0 those that say "needs libtorch" in their first line are left out.
ifeq ($(TORCH),0)
with_torch = $(shell for f in $(1); do head -n 1 $$f | grep -q 'needs libtorch' || echo $$f; done)
else
with_torch = $(1)
endif
TEST_SRC := $(call with_torch,$(sort $(wildcard tests/*/test_*.c tests/*/*/test_*.c)))
EXAMPLE_SRC := $(call with_torch,$(sort $(wildcard tests/*/example*.c)))
FUZZ_SRC := $(call with_torch,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
EXAMPLE_BIN := $(EXAMPLE_SRC:%.c=$(B)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
ALL_TEST_SRC := $(TEST_SRC) $(EXAMPLE_SRC) $(FUZZ_SRC) $(wildcard tests/fuzz/driver.c tests/check/checker.c tests/capture/wrong_folds.c tests/cli/out_of_memory.c tests/warm/*.c)

NO_BUILD = clean help format format-check deps headers fuzz schemas manuals asan ubsan tsan valgrind
ifneq ($(TORCH),0)
SHIM := $(patsubst %,$(B)/libisomer_%.so,$(if $(wildcard validate/exec/shim.cc),shim) $(if $(wildcard validate/exec/kernels/*.cc),kernels))
ifneq ($(filter-out $(NO_BUILD),$(or $(MAKECMDGOALS),all)),)
TORCH_FOUND := $(shell mkdir -p $(B) && .ci/torch-flags $(B)/torch.mk && echo yes)
include $(B)/torch.mk
ifdef TORCH_MISSING
$(error $(TORCH_MISSING))
endif
endif
endif

PYTHON_TORCH ?= $(firstword $(wildcard .venv/bin/python3) python3)
.PHONY: lint-campaign attack certified branches mutants-text rule-figures certificates bench bench-egraph bench-joins bench-compare bench-ranks bench-roles bench-real bench-static campaign mutation install seeds load growth size-bugs size-certificates scope-sizes bugs
.PHONY: uninstall wheel deb
.PHONY: all help check check-build test test-all pairs hlo refine inputs masks absorbed asan ubsan tsan valgrind deps headers fuzz format format-check schemas manuals globals clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:

all: $(B)/isomer $(B)/libegraph.a $(SHIM)

help:
	@echo 'all        $(B)/isomer, $(B)/libegraph.a and the two libraries that need libtorch'
	@echo 'test       the quick tests'
	@echo 'check      every test that a user should run'
	@echo 'test-all   check, the includes, the headers'
	@echo 'inputs     captures of other inputs, and inputs that may not be everything; SEED=N COUNT=N'
	@echo 'absorbed   pairs that rounding tells apart, or makes alike; SEED=N COUNT=N KIND=K'
	@echo 'refine     graphs of several ranks, and what their outputs are found to be made of; SEED=N COUNT=N KIND=K'
	@echo 'hlo        what XLA'"'"'s partitioner makes of small models, and that broken; COUNT=N of each fault'
	@echo 'dags       programs of 3 to 12 operators, each written in two ways, and their false twins; SEED=N COUNT=N'
	@echo 'edges      the same with operators that choose or jump and that no other generator has; SEED=N COUNT=N'
	@echo 'worded     pairs whose names are words of verdicts and assumptions; SEED=N COUNT=N'
	@echo 'exported   rules of known truth as rules export writes them; SEED=N N=N'
	@echo 'rare       pairs that part where few inputs lie, beyond cuts of the complex plane, where 0/0 is; SEED=N COUNT=N'
	@echo 'corners    rules and pairs in whose corners few inputs lie; SEED=N N=N PAIRS=N'
	@echo 'laws       the rules of tests/rules, all of them'
	@echo 'memory     allocations that fail, one at a time: [EVERY=40]'
	@echo 'masks      pairs whose masks vanish, or are seen; SEED=N COUNT=N'
	@echo 'pairs      compare every pair of captures in models/; CAPTURES=DIR: in a folder of families'
	@echo 'distributed  sequential programs against several ranks: [ONLY=TEXT]'
	@echo 'training     steps of DDP, FSDP2, tensor parallel against one device: [K=TEXT]'
	@echo 'bugs       the known bugs of models/bugs, and docs/bugs.md about them'
	@echo 'core-rules the rules of rules/core.rules, from models/variants and CAPTURES=DIR, each proved; CHECK=1: nothing is missing'
	@echo 'seeds      verdicts against seeds and order: [CAPTURES=DIR]'
	@echo 'load       every pair idle and beside four busy loops, the same bytes: [EVERY=1]'
	@echo 'growth     rules of growing size and their false twins: [SEED=1] [COUNT=200]'
	@echo 'rule-figures   how many rules comparisons need, how many serve several models, how many are proved: [CAPTURES=DIR]'
	@echo 'certificates   a thousand changed certificates: [MUTATIONS=1000]; CAPTURES=DIR: of each pair in a folder of families'
	@echo 'certified  certificates of all that is equivalent in the tree, checked: [SOURCE=masks] [COUNT=40] [SEED=1]'
	@echo 'attack     forged certificates by an attacker: [COUNT=400] [SEED=1]'
	@echo 'asan, ubsan, valgrind   the tests under each; tsan: what runs in several threads'
	@echo 'deps       fail on an include that goes against the folders'"'"' order'
	@echo 'globals    fail on mutable data that outlives a call, but for what .ci/globals gives a reason for'
	@echo 'headers    public headers compile alone as C11 and C++, their examples are in step'
	@echo 'bench      what it costs, as ratios: bench-compare [CAPTURES=DIR] [ROUNDS=7], bench-ranks, bench-roles [ROUNDS=3]'
	@echo '           and bench-egraph [BENCH_DATA=DIR] [BENCH_PEER=COMMAND] [REPEAT=3] [WORKLOADS="ac-8 ..."], bench-joins'
	@echo 'bench-before OLD=DIR  beside an older tree that is built there, in turns: the engine, comparisons, rules check: [ROUNDS=5]'
	@echo 'bench-real GPT-2 and Qwen2-0.5B in full size, made with random weights: seconds and memory (10 GB on disk), a Python with torch'
	@echo 'bench-static  models that are not run, from 8B to 405B: seconds and memory; PYTHON_VLLM=, a Python with vLLM [STATIC=DIR]'
	@echo 'campaign   a million random traces of the e-graph'
	@echo 'mutation   captures broken and rewritten at one place: [CAPTURES=DIR] [BREAKING=24] [PRESERVING=12] [SEED=1] [FAULTS=2], a Python with torch'
	@echo 'mutants-text   one token of a definition wrong at a time, against the differential test: [SITES=120] [SEED=1] [FILE=reduce|sampling|localise]'
	@echo 'lint-campaign  schedules that torch makes, programs on real gloo, what lint costs: [COUNT=100] [SEED=0]'
	@echo 'install    program, libraries, rules, manual pages, completion: PREFIX=/usr/local DESTDIR=; uninstall'
	@echo 'wheel      $(B)/dist/isomer-*.whl: the program and the Python side for pip'
	@echo 'deb        $(B)/dist/isomer_*.deb: the same without the Python side for dpkg'
	@echo 'fuzz T=name SECS=60     tests/fuzz/fuzz_name.c under libFuzzer (clang)'
	@echo 'format     clang-format on the C sources, ruff on the Python; format-check: whether something is not'
	@echo 'schemas    the table of operator schemas, from libtorch'
	@echo 'manuals    the options of cli/options.def in the manual pages and in docs/settings.md'
	@echo 'clean'

# ---- compiling ----

# Files that the program carries as strings: Python that scripts and modules it writes bring along; the page that --html fills.
EMBEDDED = repro_kernels export_rules export_fx export_inductor
CLI_OBJ += $(EMBEDDED:%=$(B)/obj/gen/%.o) $(B)/obj/gen/export_egg.o $(B)/obj/gen/page.o
# string, files -> C; trigraphs are C's too.
carry = echo 'const char $(1)[] ='; cat $(2) | sed 's/\\/\\\\/g; s/"/\\"/g; s/?/\\?/g; s/^/"/; s/$$/\\n"/'; echo ';'
SCRIPTS = $(addprefix cli/templates/page/,model.js draw.js tree.js sections.js rounding.js page.js)
LINT_SCRIPTS = cli/templates/page/draw.js $(addprefix cli/templates/lint/,chart.js lint.js)
PAGE = cli/templates/page/page.html cli/templates/page/page.css $(SCRIPTS) cli/templates/lint/lint.css $(LINT_SCRIPTS)
$(EMBEDDED:%=$(B)/gen/%.c): $(B)/gen/%.c: cli/templates/%.py Makefile
	@mkdir -p $(@D)
	@{ echo '#include "cli/embedded.h"'; $(call carry,$*,$<); } > $@
$(B)/gen/export_egg.c: cli/templates/export_egg.rs Makefile
	@mkdir -p $(@D)
	@{ echo '#include "cli/embedded.h"'; $(call carry,export_egg,$<); } > $@
$(B)/gen/page.c: $(PAGE) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "cli/report/html.h"'; $(call carry,html_page,cli/templates/page/page.html); $(call carry,html_style,cli/templates/page/page.css); \
	   $(call carry,html_script,$(SCRIPTS)); \
	   $(call carry,html_lint_style,cli/templates/page/page.css cli/templates/lint/lint.css); $(call carry,html_lint_script,$(LINT_SCRIPTS)); } > $@
$(B)/obj/gen/%.o: $(B)/gen/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# Objects are made again when the compiler or its flags change.
$(B)/flags: FORCE
	@mkdir -p $(B); echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' | cmp -s - $@ || echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' > $@
FORCE:

$(B)/obj/validate/prove/z3_lazy.o: CPPFLAGS += -DZ3_LIBRARY='"$(Z3_SONAME)"'
# Check's macros convert signs.
$(B)/obj/tests/%.o: WARN += -Wno-sign-conversion
$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(B)/libegraph.a: $(EGRAPH_OBJ)
	rm -f $@ && ar qcs $@ $^
# The e-graph alone as a shared library; its public functions are what egraph/*.h declares.
EGRAPH_VERSION = 0.1.0
$(B)/libegraph.so: $(EGRAPH_OBJ)
	$(CC) -shared -Wl,-soname,libegraph.so.0 $(LDFLAGS) $^ -lxxhash -lm -o $@
$(B)/egraph.pc: egraph/egraph.pc.in FORCE
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(EGRAPH_VERSION)|' $< > $@
$(B)/libisomer.a: $(LIB_OBJ)
	rm -f $@ && ar qcs $@ $^

# The commands without their main, for what tests them.
$(B)/libcli.a: $(filter-out %/main.o,$(CLI_OBJ))
	rm -f $@ && ar qcs $@ $^
# What `isomer saturate` runs lies side by side, so that it takes few pages of the program into memory.
SATURATE_OBJ := $(filter %/main.o $(B)/obj/cli/saturate/%.o,$(CLI_OBJ)) $(filter $(B)/obj/egraph/%,$(LIB_OBJ))
$(B)/isomer: $(SATURATE_OBJ) $(CLI_OBJ) $(B)/libisomer.a
	$(CC) -rdynamic $(LDFLAGS) $^ $(LIBS) -o $@

$(B)/libisomer_shim.so: $(wildcard validate/exec/*.cc) $(B)/torch.mk
	$(CXX) $(CPPFLAGS) $(CXXFLAGS_TORCH) -shared $(filter %.cc,$^) -o $@ $(TORCH_LDFLAGS)
$(B)/libisomer_kernels.so: $(wildcard validate/exec/kernels/*.cc) $(B)/torch.mk
	$(CXX) $(CPPFLAGS) $(CXXFLAGS_TORCH) -shared $(filter %.cc,$^) -o $@ $(TORCH_LDFLAGS)

include .ci/install.mk

# ---- tests ----

$(B)/tests/bench/textbook: $(B)/obj/tests/bench/textbook.o $(B)/obj/tests/support/textbook.o $(B)/libegraph.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -lxxhash -lm -o $@

# Without libtorch and Z3, so that they can run under -fsanitize=thread.
$(B)/tests/synth/test_threads: $(B)/obj/tests/synth/test_threads.o $(B)/obj/synth/relate/tensor_view.o $(B)/obj/rules/tensor.o $(B)/obj/rules/blocks.o $(B)/libegraph.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -lcheck -lsubunit -lrt -lxxhash -lm -lpthread -o $@
$(B)/tests/egraph/test_sat_threads $(B)/tests/egraph/test_big: $(B)/tests/egraph/%: $(B)/obj/tests/egraph/%.o $(B)/libegraph.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -lcheck -lsubunit -lrt -lxxhash -lm -lpthread -o $@

$(B)/tests/cli/%: $(B)/obj/tests/cli/%.o $(B)/libcli.a $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ -lcheck -lsubunit -lrt $(LIBS) -o $@
ARENA = alloc strndup strdup printf
# Pieces of arenas fail one by one there, not with the blocks that hold them.
$(B)/tests/cli/out_of_memory: LIBS += $(ARENA:%=-Wl,--wrap=iso_arena_%)
$(B)/tests/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/driver.o $(B)/libcli.a $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ $(LIBS) -o $@
$(B)/tests/%/example: $(B)/obj/tests/%/example.o $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ $(LIBS) -o $@
# Calls by which a definition is tested stand in comments beside it: ` * call: "variables" "call"`.
$(B)/gen/definition_calls.inc: $(wildcard validate/ops/*.c)
	@mkdir -p $(@D)
	@sed -n 's/^ \* call: \("[^"]*"\) \("[^"]*"\).*/{\1, \2},/p' $^ | cmp -s - $@ || sed -n 's/^ \* call: \("[^"]*"\) \("[^"]*"\).*/{\1, \2},/p' $^ > $@
$(B)/obj/tests/validate/%.o: CPPFLAGS += -I$(B)/gen
$(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/validate/test_*.c tests/validate/*/test_*.c)): $(B)/gen/definition_calls.inc
# The prover's definitions, wrong at one place at a time: linked before the library, which then leaves its own out.
MUTANTS := elementwise layout fill reduce nn order dist kernels composite written window index pick slice cat unary backward views
MUTANT_OBJ := $(MUTANTS:%=$(B)/obj/mutants/%.o)
$(B)/obj/mutants/%.o: validate/ops/%.c tests/validate/mutate.h $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DMUTANT_FILE=$(shell echo $(MUTANTS) | tr ' ' '\n' | grep -nx $* | cut -d: -f1) -include tests/validate/mutate.h -c $< -o $@
$(B)/tests/validate/test_prove_mutants: $(B)/obj/tests/validate/test_prove_mutants.o $(MUTANT_OBJ) $(SUPPORT_OBJ) $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ -lcheck -lsubunit -lrt $(LIBS) -o $@
$(B)/tests/validate/test_obligations: LIBS += -lz3
$(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJ) $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ -lcheck -lsubunit -lrt $(LIBS) -o $@

# One token of a definition file wrong at a time, against the differential test; what is not noticed is listed. [SITES=120] [SEED=1] [FILE=reduce]
mutants-text: all $(B)/tests/validate/test_prove_diff $(B)/tests/validate/test_prove_rules $(B)/tests/validate/test_sampling $(B)/tests/validate/test_refute \
  $(B)/tests/localise/test_suspects $(B)/tests/localise/test_rank_mend
	@python3 tests/validate/mutants_text.py --build $(B) --compile '$(CC) $(CPPFLAGS) $(CFLAGS)' --link '$(CC) -rdynamic $(LDFLAGS)' \
	  --libraries '-lcheck -lsubunit -lrt $(LIBS)' --sites $(or $(SITES),120) --seed $(or $(SEED),1) $(if $(FILE),--file $(FILE)) $(MUTANT_OPTIONS)

# Most of what a small comparison costs is loading libtorch: in `test` and `check` the program is one that has it loaded
# (tests/warm), save where its start, its end or its memory is what a script looks at.
WARM = $(if $(or $(filter 0,$(TORCH)),$(SAN)),,$(B)/tests/warm/isomer)
ISOMER = $(B)/isomer
check-build: ISOMER = $(or $(WARM),$(B)/isomer)
$(B)/tests/warm/isomer: $(B)/obj/tests/warm/client.o $(B)/tests/warm/server.so
	$(CC) $(LDFLAGS) $< -o $@
$(B)/tests/warm/%.so: $(B)/obj/tests/warm/%.o
	@mkdir -p $(@D)
	$(CC) -shared $(LDFLAGS) $^ -ldl -o $@

# One command a line, for .ci/test-run.
CHECKER = $(if $(filter 0,$(TORCH)),,$(B)/tests/check/checker)
DISTRIBUTED = python3 tests/pairs/distributed.py --isomer $(ISOMER)
TRAINING = python3 tests/train/steps.py --isomer $(ISOMER)
RANK_BUGS = python3 tests/pairs/rank_bugs.py --isomer $(ISOMER)
ROLES = python3 tests/pairs/roles.py --isomer $(ISOMER) --driver $(B)/tests/capture/wrong_folds
ROLE_NORMS = python3 tests/pairs/role_norms.py --isomer $(ISOMER) --driver $(B)/tests/capture/wrong_folds
SPELLED = python3 tests/pairs/spelled.py --isomer $(ISOMER)
INFERRED = python3 tests/pairs/inferred.py --isomer $(ISOMER)
RANK_FAULTS = $(PYTHON_TORCH) tests/pairs/rank_faults.py --isomer $(ISOMER)
PLAIN_RANKS = $(PYTHON_TORCH) tests/pairs/plain_ranks.py --isomer $(ISOMER)
PLAIN_MORE = $(PYTHON_TORCH) tests/pairs/plain_more.py --isomer $(ISOMER)
LINT = schedules events races mutations sharing recorder lint_reports lint_page damaged
PLACEMENTS = python3 tests/lint/placements.py --isomer $(ISOMER)
E2E = python3 tests/cli/e2e.py --isomer $(ISOMER) $(if $(filter 0,$(TORCH)),--no-torch)
CAPTURE_PY = $(PYTHON_TORCH) tests/capture_py/run.py --isomer $(ISOMER)
TRAPS = python3 tests/pairs/run.py --isomer $(ISOMER)
CONSTANTS = python3 tests/pairs/constants.py --isomer $(ISOMER)
BRANCHES = python3 tests/pairs/branches.py --isomer $(ISOMER)
CORNERS = python3 tests/pairs/corners.py --isomer $(ISOMER)
INPUTS = python3 tests/pairs/inputs.py --isomer $(ISOMER)
INPUT_RANGES = python3 tests/pairs/input_ranges.py --isomer $(ISOMER)
UNREAD = python3 tests/pairs/unread.py --isomer $(ISOMER)
MASKS = python3 tests/pairs/masks.py --isomer $(ISOMER)
RULES = python3 tests/cli/rules.py --isomer $(ISOMER) $(if $(filter 0,$(TORCH)),--no-torch)
LIBRARY = python3 tests/cli/library.py --isomer $(ISOMER) $(if $(filter 0,$(TORCH)),--no-torch)
ROBUST = python3 tests/cli/robust.py --isomer $(B)/isomer $(if $(filter 0,$(TORCH)),--no-torch) --flips $(or $(FLIPS),400)
DRIVER = $(if $(filter 0,$(TORCH)),,$(B)/tests/cli/out_of_memory)
WRONG_FOLDS = $(if $(filter 0,$(TORCH)),,$(B)/tests/capture/wrong_folds)
MEMORY = python3 tests/cli/memory.py --isomer $(ISOMER) --driver $(DRIVER)
FAILING = python3 tests/cli/failing.py --isomer $(B)/isomer
REPORTS = python3 tests/cli/reports.py --isomer $(ISOMER)
PAGES = python3 tests/cli/page.py --isomer $(ISOMER)
CERTIFICATES = python3 tests/cli/certificates.py --isomer $(ISOMER) --checker $(B)/tests/check/checker
FORGED = python3 tests/cli/forged.py --isomer $(ISOMER)
FORGED_LEAVES = python3 tests/cli/forged_leaves.py --isomer $(ISOMER)
SATURATE = python3 tests/cli/saturate.py --isomer $(ISOMER)
IMPORTS = python3 tests/cli/imports.py --isomer $(ISOMER)
SATURATE_PAGE = python3 tests/cli/saturate_page.py --isomer $(ISOMER)
JOINS = python3 tests/bench/joins.py --isomer $(B)/isomer
FORGED_MASKS = python3 tests/cli/forged_masks.py --isomer $(ISOMER)
FORGED_CHAINS = python3 tests/cli/forged_chains.py --isomer $(ISOMER) --checker $(B)/tests/check/checker
CERTIFIED = $(PYTHON_TORCH) tests/pairs/certified.py --isomer $(ISOMER)
ATTACK = python3 tests/cli/attack.py --isomer $(ISOMER) --checker $(B)/tests/check/checker
LENGTHS = python3 tests/cli/lengths.py --isomer $(ISOMER)
UNRUN = python3 tests/cli/static.py --isomer $(ISOMER)
UNRUN_CERTIFICATES = python3 tests/cli/static_certificates.py --isomer $(ISOMER)
MANUAL = python3 tests/cli/manual.py --isomer $(B)/isomer
INSTALL_TEST = python3 tests/cli/install.py --build $(B) $(if $(filter 0,$(TORCH)),--no-torch)
RELATIONS = python3 tests/cli/relations.py --isomer $(ISOMER)
REFINE = python3 tests/cli/refine.py --isomer $(ISOMER)
WITNESS = python3 tests/cli/witness.py --isomer $(ISOMER)
SEEDS = python3 tests/cli/determinism.py --isomer $(B)/isomer $(if $(CAPTURES),--captures $(CAPTURES),--quick)
LOAD = python3 tests/cli/load.py --isomer $(B)/isomer
ADVERSARY = $(PYTHON_TORCH) tests/adversary/rules.py --isomer $(ISOMER)
CANCELLED = python3 tests/adversary/cancelled.py --isomer $(ISOMER)
ABSORBED = $(PYTHON_TORCH) tests/pairs/absorbed.py --isomer $(ISOMER)
RECORDED = $(PYTHON_TORCH) tests/lint/recorded.py --isomer $(ISOMER)
LINT_STEPS = $(PYTHON_TORCH) tests/lint/training.py --isomer $(ISOMER)
LEFT_OUT = $(PYTHON_TORCH) tests/lint/left_out.py --isomer $(ISOMER)
BY_HAND = $(PYTHON_TORCH) tests/lint/by_hand.py --isomer $(ISOMER)
UNDEFINED = $(PYTHON_TORCH) tests/pairs/undefined_drawn.py --isomer $(ISOMER)
RARE = $(PYTHON_TORCH) tests/pairs/rare.py --isomer $(ISOMER)
DAGS = $(PYTHON_TORCH) tests/pairs/dags.py --isomer $(ISOMER)
WORDED = python3 tests/pairs/worded.py --isomer $(ISOMER)
EXPORTED = python3 tests/cli/exported.py --isomer $(ISOMER)
EFFECTS = $(PYTHON_TORCH) tests/pairs/effects.py --isomer $(ISOMER)
SIZE_CERTIFICATES = $(PYTHON_TORCH) tests/capture_py/size_certificates.py --isomer $(ISOMER)
SIZE_BUGS = $(PYTHON_TORCH) tests/capture_py/size_bugs.py --isomer $(ISOMER)
ROUNDING = python3 tests/pairs/rounding.py --isomer $(ISOMER)
WEIGHTS = python3 tests/pairs/weights.py --isomer $(ISOMER)
FOLDS = $(PYTHON_TORCH) tests/pairs/folds.py --isomer $(ISOMER)
CHECKED = $(PYTHON_TORCH) tests/capture_py/checked_families.py --isomer $(ISOMER)
PLANTED = $(PYTHON_TORCH) tests/pairs/planted.py --isomer $(ISOMER)
BUGS = python3 tests/cli/bugs.py --isomer $(ISOMER)
HLO = $(PYTHON_TORCH) tests/hlo/pairs.py --isomer $(ISOMER)
SERVED = python3 tests/warm/served.py --build $(B)
GPU = tests/gpu/run.sh --dry --quick --no-build --build $(B) --out $(B)/gpu
check-build: all $(B)/libegraph.so $(TEST_BIN) $(EXAMPLE_BIN) $(FUZZ_BIN) $(CHECKER) $(DRIVER) $(WRONG_FOLDS) $(WARM) $(if $(SAN),,$(B)/tests/warm/clock.so)
	@{ $(foreach t,$(TEST_BIN) $(EXAMPLE_BIN),echo $(t);) \
	   $(foreach t,$(FUZZ_SRC),echo $(t:%.c=$(B)/%) tests/fuzz/corpus/$(t:tests/fuzz/fuzz_%.c=%);) \
	   } > $(B)/programs.list
	@{ cat $(B)/programs.list; echo '$(E2E) --quick'; } > $(B)/test.list
	@{ cat $(B)/programs.list; echo '$(E2E)'; echo '$(RULES) --every 4'; echo '$(LIBRARY) --every 6'; echo '$(ROBUST)'; echo '$(MANUAL)'; echo '$(INSTALL_TEST)'; echo '$(JOINS) --check'; echo '$(IMPORTS)'; echo '$(SATURATE_PAGE)'; \
	   $(if $(filter 0,$(TORCH)),,echo '$(WITNESS)'; echo '$(RELATIONS)'; echo '$(REFINE)'; echo '$(SEEDS)'; echo '$(LOAD) --quick $(if $(SAN),,--clock $(B)/tests/warm/clock.so)'; echo '$(CERTIFICATES) --mutations 60'; echo '$(FORGED)'; echo '$(FORGED_LEAVES)'; echo '$(SATURATE)'; echo '$(FORGED_MASKS)'; echo '$(ATTACK) --count 104'; echo '$(LENGTHS)'; echo '$(UNRUN)'; echo '$(UNRUN_CERTIFICATES)'; echo '$(REPORTS)'; echo '$(FAILING) --calls 2'; echo '$(MEMORY) --every 1440'; echo '$(PAGES)'; echo '$(TRAPS)'; echo '$(CONSTANTS) --count 40 --certificates'; echo '$(BRANCHES) --rules 180 --pairs 12'; echo '$(INPUTS) --count 102 --certificates'; echo '$(INPUT_RANGES) --count 39 --certificates'; echo '$(MASKS) --count 24 --certificates'; echo '$(CAPTURE_PY)'; echo '$(BUGS) --quick'; echo '$(GPU)';) } > $(B)/check.list
	@$(if $(and $(wildcard .git),$(wildcard .venv/bin/ruff)),{ echo '$(MAKE) -s format-check'; echo .ci/form; echo .ci/unused $(B); echo .ci/tested; } >> $(B)/check.list,:)
	@$(if $(filter 0,$(TORCH)),:,{ echo '$(CERTIFIED) --sample 40 --count 6'; echo '$(FORGED_CHAINS) --pairs 7'; echo '$(ADVERSARY) --count 120'; echo '$(CANCELLED) --count 60'; echo '$(ABSORBED) --count 60 --open 0.1'; echo '$(UNDEFINED) --count 16'; echo '$(RARE)'; echo '$(DAGS) --count 8'; echo '$(DAGS) --edges --count 6'; echo '$(WORDED) --count 12'; echo '$(EXPORTED) --count 42'; echo '$(EFFECTS) --every 9'; echo '$(FOLDS) --count 12 --certificates'; echo '$(FOLDS) --count 12 --seed 5 --at-these-weights'; echo '$(WEIGHTS)'; echo '$(ROUNDING)'; echo '$(SIZE_BUGS) --count 4 --mutants 3 --claims 0.5'; echo '$(SIZE_CERTIFICATES) --count 6 --changes 3'; } >> $(B)/check.list)
	@$(if $(SAN),:,echo '$(MAKE) -s globals' >> $(B)/check.list)
	@$(if $(WARM),echo '$(SERVED)' >> $(B)/check.list,:)
	@$(if $(filter 0,$(TORCH)),:,{ echo '$(HLO) --faults 0'; echo '$(HLO) -k gpt-tensor-2'; } >> $(B)/check.list)
	@$(if $(filter 0,$(TORCH)),:,{ echo '$(RECORDED)'; echo '$(LINT_STEPS) --quick'; echo '$(BY_HAND) -k heads'; echo '$(BY_HAND) -k causal_ring'; echo '$(LEFT_OUT) --only ranks, --seed 5 --count 2'; } >> $(B)/check.list)
	@$(if $(filter 0,$(TORCH)),:,{ echo '$(PLANTED) --every 14'; echo '$(CHECKED) gpt2 --broken 2'; } >> $(B)/check.list)
	@$(if $(filter 0,$(TORCH)),:,{ echo '$(DISTRIBUTED)'; echo '$(RANK_BUGS)'; echo '$(SPELLED)'; echo '$(INFERRED)'; echo '$(ROLES) --ranks 4'; echo '$(ROLE_NORMS)'; echo '$(TRAINING) --quick'; echo '$(RANK_FAULTS) --count 9 --least 80'; echo '$(PLAIN_RANKS) --seed 3 --count 4'; echo '$(PLAIN_RANKS) --seed 2 --first 18 --count 1'; echo '$(PLAIN_MORE) --seed 1'; echo '$(PLAIN_MORE) --seed 60611 --first 2 --kind grid'; echo '$(PLAIN_MORE) --seed 60611 --first 1 --kind accumulate'; echo '$(PLAIN_RANKS) --seed 3 --count 4 --faults'; } >> $(B)/check.list)
	@$(if $(filter 0,$(TORCH)),:,echo '$(CORNERS) --rules 330 --pairs 33' >> $(B)/check.list)
	@$(if $(filter 0,$(TORCH)),:,echo '$(UNREAD) --count 42 --certificates' >> $(B)/check.list)
	@{ echo '$(PLACEMENTS)'; $(foreach t,$(LINT),echo 'python3 tests/lint/$(t).py --isomer $(B)/isomer';) } >> $(B)/check.list

test: check-build
	@.ci/test-run $(B)/test.list
check: check-build
	@.ci/test-run $(B)/check.list
test-all: deps headers check
# Rules of an adversary against random tests, with a truth that mpmath knows: [SEED=1] [COUNT=600] [KIND=absorb|attrs|complex|literals]
adversary: all
	@$(ADVERSARY) --seed $(or $(SEED),1) --count $(or $(COUNT),600) $(if $(KIND),--only $(KIND))
# Rules that cancel what may be 0, of drawn operators: [SEED=1] [COUNT=300]
cancelled: all
	@$(CANCELLED) --seed $(or $(SEED),1) --count $(or $(COUNT),300)
# The same as pairs of graphs, each attribute with a value: [SEED=1] [COUNT=300] [KIND=absorb|attrs|complex]
absorbed: all
	@$(ABSORBED) --seed $(or $(SEED),1) --count $(or $(COUNT),300) $(if $(KIND),--only $(KIND))
# The same seed the same bytes, ten seeds and both orders the same verdict; CAPTURES=DIR: for every pair of sides there.
seeds: all
	@python3 tests/cli/determinism.py --isomer $(B)/isomer $(if $(CAPTURES),--captures $(CAPTURES))

# All rules of tests/rules, of which check takes every second, and of rules/core.rules by solvers, every fourth.
.PHONY: laws memory
laws: all
	@$(RULES)
	@$(LIBRARY)
# Allocations that fail, one at a time: [EVERY=40]
memory: all $(DRIVER)
	@$(MEMORY) --every $(or $(EVERY),40)

# Bugs that another length shows, drawn, against execution at every length: [SEED=1] [COUNT=90]
size-bugs: all
	@$(SIZE_BUGS) --seed $(or $(SEED),1) --count $(or $(COUNT),90)

# Certificates of all sizes, and hundreds of changed ones: [SEED=1] [COUNT=21]
size-certificates: all
	@$(SIZE_CERTIFICATES) --seed $(or $(SEED),1) --count $(or $(COUNT),21) --changes 8

# Claimed scopes of families of Transformers, run at their corners and at sizes drawn: [SIZES=50] [FAMILIES="gpt2 llama"]
scope-sizes: all
	@$(PYTHON_TORCH) tests/capture_py/scope_sizes.py --isomer $(B)/isomer --sizes $(or $(SIZES),50) $(FAMILIES)

# Every pair of the tree idle and beside four busy loops: the same bytes. [EVERY=1: of the small pairs]
load: all
	@$(LOAD) --every $(or $(EVERY),1)

# Rules of growing size and their slightly false twins. [SEED=1] [COUNT=200]
growth: all
	@python3 tests/cli/growth.py --isomer $(B)/isomer --seed $(or $(SEED),1) --count $(or $(COUNT),200)

# Rules and pairs that turn on where an operator chooses or jumps. [SEED=1] [N=1200] [PAIRS=300]
branches: all
	@$(BRANCHES) --seed $(or $(SEED),1) --rules $(or $(N),1200) --pairs $(or $(PAIRS),300) --show

# Rules and pairs in whose corners few inputs lie. [SEED=1] [N=1320] [PAIRS=330]
.PHONY: corners
corners: all
	@$(CORNERS) --seed $(or $(SEED),1) --rules $(or $(N),1320) --pairs $(or $(PAIRS),330) --show

# Certificates of all correct pairs and a thousand changed ones; CAPTURES=DIR: certificates of every correct pair there.
certificates: all $(CHECKER)
	@$(CERTIFICATES) $(if $(CAPTURES),--captures $(CAPTURES),--mutations $(or $(MUTATIONS),1000))

# Whatever is equivalent in the tree has a certificate that holds; COUNT drawn by each generator. [SEED=1] [COUNT=40] [SOURCE=masks] [CAPTURES=DIR]
certified: all
	@$(CERTIFIED) --seed $(or $(SEED),1) --count $(or $(COUNT),40) $(if $(SOURCE),--source $(SOURCE)) $(if $(CAPTURES),--captures $(CAPTURES))

attack: all
	@$(ATTACK) --count $(or $(COUNT),400) --seed $(or $(SEED),1) --summary
	@$(FORGED_CHAINS) --seed $(or $(SEED),1) --pairs $(or $(PAIRS),20)

# rules/core.rules with what the pairs of models/variants and of CAPTURES=DIR need beyond it; CHECK=1: whether they need something.
core-rules: all
	@python3 rules/make_core.py --isomer $(B)/isomer $(if $(CHECK),--check) models/variants $(CAPTURES)

# How many rules comparisons need, how many different ones, shared by models, proved: of models/variants, or of CAPTURES=DIR.
rule-figures: all
	@python3 tests/bench/rule_figures.py --isomer $(B)/isomer $(CAPTURES)

# Pairs that part where few inputs lie (tests/pairs/rare.py). [SEED=1] [COUNT=20]
.PHONY: rare
rare: all
	@$(RARE) --seed $(or $(SEED),1) --count $(or $(COUNT),20)

# Programs of 3 to 12 operators, each written in two ways, and their false twins (tests/pairs/dags.py). [SEED=1] [COUNT=100]
.PHONY: dags
dags: all
	@$(DAGS) --seed $(or $(SEED),1) --count $(or $(COUNT),100)

# Programs with an operator of tests/pairs/dag_edges.py in each. [SEED=1] [COUNT=100]
.PHONY: edges worded exported
edges: all
	@$(DAGS) --edges --seed $(or $(SEED),1) --count $(or $(COUNT),100)

# Pairs whose names are words of verdicts, evidence and assumptions (tests/pairs/worded.py). [SEED=1] [COUNT=300]
worded: all
	@$(WORDED) --seed $(or $(SEED),1) --count $(or $(COUNT),300)

# What rules export writes of rules whose truth is known (tests/cli/exported.py). [SEED=1] [N=420]
exported: all
	@$(EXPORTED) --seed $(or $(SEED),1) --count $(or $(N),420)

# A campaign over what two captures are run on (tests/pairs/inputs.py): other examples, domains, relations of one set only.
inputs: all
	@$(INPUTS) --seed $(or $(SEED),0) --count $(or $(COUNT),600)
	@$(INPUT_RANGES) --seed $(or $(SEED),0) --count $(or $(COUNT),600)
	@$(UNREAD) --seed $(or $(SEED),0) --count $(or $(COUNT),600)

# Sequential graphs against what ranks make of them, and faulty twins: the relations found are the generator's. [SEED=1] [COUNT=3] [KIND=K]
refine: all
	@$(REFINE) --seed $(or $(SEED),1) --count $(or $(COUNT),3) $(if $(KIND),--only $(KIND))
# What XLA's partitioner makes of small models, and that with one thing broken: [COUNT=1] of each fault, CAPTURES=DIR: other modules.
hlo: all
	@$(HLO) --faults $(or $(COUNT),1) $(CAPTURES)

# Pairs with masks, which may be read as minus infinity only where they vanish (tests/pairs/masks.py).
masks: all
	@$(MASKS) --seed $(or $(SEED),0) --count $(or $(COUNT),600)

.PHONY: distributed planted passes folded
# Every model type of the installed Transformers, captured and its eager attention against sdpa: a table (tests/capture_py/models_table.py). [EVERY=20] [CAPTURE_ONLY=1] [OUTPUT=FILE.md]
models-table: all
	@$(PYTHON_TORCH) tests/capture_py/models_table.py --isomer $(B)/isomer --every $(or $(EVERY),1) $(if $(CAPTURE_ONLY),--capture-only) $(if $(OUTPUT),--output $(OUTPUT))

# What people fold into weights while loading, in plain PyTorch (tests/capture_py/folded.py): [K=lora]
folded: all
	@$(PYTHON_TORCH) tests/capture_py/folded.py --isomer $(B)/isomer $(if $(K),--only $(K))

# Inductor's graph passes over twenty families, and ten of them broken (tests/capture_py/checked_families.py): [OUTPUT=FILE.md]
passes: all
	@$(CHECKED) --broken 10 $(if $(OUTPUT),--table $(OUTPUT))

# Bugs planted in Transformers' own code, and whether the words name them (tests/pairs/planted.py): [K=helium] [OUTPUT=FILE.md]
planted: all
	@$(PLANTED) -v $(if $(K),--only $(K)) $(if $(OUTPUT),--table $(OUTPUT))

.PHONY: training plans
# Training steps of PyTorch's own wrappers against one device, with rows for docs/training.md: [K=sharded]
training: all
	@$(TRAINING) --table $(if $(K),-k $(K))
# Training plans that are drawn, against one device (tests/train/drawn.py): [SEED=1] [COUNT=8]
plans: all
	@$(PYTHON_TORCH) tests/train/drawn.py --isomer $(ISOMER) --seed $(or $(SEED),1) --count $(or $(COUNT),8)
# Sequential programs against several ranks (tests/pairs/distributed.py): all kinds, models, ranks and layers, and faults. [ONLY=TEXT] [COUNT=100]
distributed: all
	@$(DISTRIBUTED) --all --table $(if $(ONLY),--only '$(ONLY)')
	@$(RANK_FAULTS) --count $(or $(COUNT),100)
	@$(PLAIN_RANKS) --count $(or $(COUNT),100) --table
	@$(PLAIN_MORE) --count $(or $(COUNT),100) --table

# Every pair of a folder of families of captures (models/ without CAPTURES), as tests/pairs/captures.py says.
pairs: all
	@python3 tests/pairs/captures.py --isomer $(B)/isomer $(CAPTURES)

# COUNT pairs whose constants rounding, or a bug of nearly its size, tells apart.
constants: all
	@$(CONSTANTS) --seed $(or $(SEED),1) --count $(or $(COUNT),400)

# The C code of ours is instrumented, libtorch and Z3 are not: what they keep is in .ci/lsan.supp.
asan:
	@LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/lsan.supp:print_suppressions=0 ASAN_OPTIONS=detect_leaks=1:exitcode=99:allocator_may_return_null=1 \
	  $(MAKE) B=build-asan OPT='-O1 -g -fno-omit-frame-pointer' SAN=-fsanitize=address $(or $(SUITE),check)
ubsan:
	@UBSAN_OPTIONS=print_stacktrace=1:exitcode=99 \
	  $(MAKE) B=build-ubsan OPT='-O1 -g' SAN='-fsanitize=undefined -fno-sanitize-recover=all' $(or $(SUITE),check)
tsan:
	@$(MAKE) TORCH=0 B=build-tsan OPT='-O1 -g' SAN=-fsanitize=thread build-tsan/tests/egraph/test_sat_threads build-tsan/tests/egraph/test_big build-tsan/tests/synth/test_threads
	TSAN_OPTIONS=exitcode=99 build-tsan/tests/egraph/test_sat_threads
	TSAN_OPTIONS=exitcode=99 build-tsan/tests/egraph/test_big
	TSAN_OPTIONS=exitcode=99 build-tsan/tests/synth/test_threads
# Without libtorch, which takes minutes to start under it, without the end-to-end tests, and without the tests of failing
# allocations, whose allocator it would replace by its own (they run under asan).
valgrind:
	@$(MAKE) TORCH=0 B=build-valgrind OPT='-O1 -g' check-build
	@grep -v _oom build-valgrind/programs.list > build-valgrind/valgrind.list
	@.ci/test-run --timeout 1800 --prefix 'valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=.ci/valgrind.supp' build-valgrind/valgrind.list

# ---- measurements ----

bench: bench-egraph bench-compare bench-ranks bench-roles
# BENCH_DATA=DIR: workloads from there; BENCH_PEER=COMMAND: beside another engine that takes `saturate FILE --json - --only K`.
bench-egraph: $(B)/isomer $(B)/tests/bench/textbook
	@python3 tests/bench/egraph.py --isomer $(B)/isomer --textbook $(B)/tests/bench/textbook --repeat $(or $(REPEAT),3) \
	  $(if $(BENCH_DATA),--data $(BENCH_DATA)) $(if $(BENCH_PEER),--peer '$(BENCH_PEER)') $(WORKLOADS)
# Beside an older tree, built in OLD, in turns (tests/bench/before.py).
.PHONY: bench-before
bench-before: all
	@python3 tests/bench/before.py --isomer $(B)/isomer --old '$(OLD)' --rounds $(or $(ROUNDS),5)
# Patterns that a join in a poor order takes squares of steps for: how time grows.
bench-joins: $(B)/isomer
	@$(JOINS)
# A million random traces of calls, and as many random rule sets as the tests have.
campaign: $(B)/tests/prop/test_saturate $(B)/tests/prop/test_sat_runs
	TRACES=$(or $(TRACES),1000000) $(B)/tests/prop/test_saturate
	$(B)/tests/prop/test_sat_runs
bench-real: all
	@$(PYTHON_TORCH) tests/bench/real.py --isomer $(B)/isomer
# STATIC=DIR: captures are kept there, and taken from there.
bench-static: all
	@$(or $(PYTHON_VLLM),$(PYTHON_TORCH)) tests/bench/static.py --isomer $(B)/isomer $(if $(STATIC),--folder $(STATIC))
# What takes longer of lint: tables that torch makes anew, programs on real gloo, costs. A Python with torch.
lint-campaign: all
	@$(PYTHON_TORCH) tests/lint/placements.py --truth
	@$(LEFT_OUT) --count $(or $(COUNT),60) --seed $(or $(SEED),0)
	@$(PYTHON_TORCH) tests/lint/drawn_programs.py --isomer $(B)/isomer --count $(or $(COUNT),200) --seed $(or $(SEED),0)
	@$(LINT_STEPS)
	@$(BY_HAND)
	@$(PYTHON_TORCH) tests/lint/schedules.py --isomer $(B)/isomer --torch --ranks 2,3,4,8,16 --shuffles 400
	@$(PYTHON_TORCH) tests/lint/gloo.py --isomer $(B)/isomer --count $(or $(COUNT),100) --seed $(or $(SEED),0)
	@python3 tests/lint/recorder.py --isomer $(B)/isomer --count 400
	@python3 tests/lint/sharing.py --isomer $(B)/isomer --count 600
	@python3 tests/lint/scale.py --isomer $(B)/isomer
# Mutants of the captures in models/ or in a folder of families, and what becomes of them.
mutation: all
	@$(PYTHON_TORCH) tests/mutation/campaign.py $(CAPTURES) --isomer $(B)/isomer --breaking $(or $(BREAKING),24) --preserving $(or $(PRESERVING),12) --seed $(or $(SEED),1) $(if $(FAULTS),--faults $(FAULTS))
	@python3 tests/lint/mutations.py --isomer $(B)/isomer --seeds $(or $(LINT_SEEDS),20)

# Ranks of one role, 64 of them against 8.
bench-roles: all
	@python3 tests/bench/role_growth.py --isomer $(B)/isomer --rounds $(or $(ROUNDS),3)

bench-ranks: all
	@python3 tests/bench/rank_growth.py --isomer $(B)/isomer --rounds $(or $(ROUNDS),3)

# The loop that `isomer run` is held against needs a Python with torch: left out where there is none.
bench-compare: all
	@python3 tests/bench/compare.py --isomer $(B)/isomer --rounds $(or $(ROUNDS),7) $(if $(CAPTURES),--captures $(CAPTURES)) \
	  $$($(PYTHON_TORCH) -c 'import torch' 2>/dev/null && echo --python $(PYTHON_TORCH))

# ---- checks of the sources ----

deps:
	@.ci/deps
	@.ci/operators
# Mutable data that outlives a call, in the objects of the program.
globals: $(B)/isomer
	@.ci/globals $(B)/obj $(LIB_OBJ) $(filter-out $(B)/obj/gen/%,$(CLI_OBJ))
headers:
	@CC='$(CC)' CXX='$(CXX)' .ci/headers

# libFuzzer needs clang; what crashes lands in the corpus, what is merely new stays in build-fuzz/.
fuzz:
	@[ -n '$(T)' ] && [ -e tests/fuzz/fuzz_$(T).c ] || { echo 'make fuzz T=name: $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))' >&2; exit 1; }
	@$(MAKE) -s TORCH=0 B=build-fuzz CC=$(CLANG) OPT='-O1 -g' SAN=-fsanitize=address,fuzzer-no-link build-fuzz/libcli.a build-fuzz/libisomer.a build-fuzz/obj/tests/fuzz/fuzz_$(T).o
	@mkdir -p tests/fuzz/corpus/$(T)
	$(CLANG) -fsanitize=address,fuzzer build-fuzz/obj/tests/fuzz/fuzz_$(T).o build-fuzz/libcli.a build-fuzz/libisomer.a $(LIBS) -o build-fuzz/$(T)
	@mkdir -p build-fuzz/corpus-$(T)
	build-fuzz/$(T) -max_total_time=$(SECS) -artifact_prefix=tests/fuzz/corpus/$(T)/ build-fuzz/corpus-$(T) tests/fuzz/corpus/$(T)

# The layout is clang-format 14's, and ruff's for Python; other versions lay out otherwise.
CLANG_FORMAT ?= $(firstword $(wildcard .venv/bin/clang-format) clang-format)
RUFF ?= $(firstword $(wildcard .venv/bin/ruff) ruff)
C_FILES = $$(git ls-files '*.c' '*.h' '*.cc')
PY_FILES = $$(git ls-files '*.py') .ci/deps .ci/form .ci/test-run .ci/tested .ci/unused
format:
	$(CLANG_FORMAT) -i $(C_FILES)
	$(RUFF) format -q $(PY_FILES)
format-check:
	@$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)
	@$(RUFF) format --check -q $(PY_FILES)
	@echo 'format-check: everything is laid out'

# The options of cli/options.def in the manual pages and in docs/settings.md.
manuals:
	@.ci/gen-manuals

# Operators of the libtorch that was found; the result is in the tree, so that building needs none.
schemas:
	@py=python3; $$py -c 'import torch' 2>/dev/null || py=.venv/bin/python3; $$py .ci/gen-schemas.py

clean:
	rm -rf build build-asan build-ubsan build-tsan build-valgrind build-fuzz $(B)

-include $(EMBEDDED:%=$(B)/obj/gen/%.d) $(B)/obj/gen/page.d $(patsubst %.c,$(B)/obj/%.d,$(LIB_SRC) $(CLI_SRC) $(SUPPORT_SRC) $(ALL_TEST_SRC)) $(wildcard $(B)/*.d $(B)/obj/mutants/*.d)
