# Isomer. No configure step: `make` builds, `make check` installs what is missing, builds and passes the tests.
# Output goes to build/; B=dir puts it elsewhere. TORCH=0 builds and tests all that needs no libtorch.
CC ?= gcc
CXX ?= g++
B ?= build
TORCH ?= 1
OPT ?= -O2 -g
WARN = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS += -std=c11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -MMD -MP $(SAN)
LDFLAGS += $(SAN)
LIBS = -lz3 -ljansson -lxxhash -ldl -lm -lpthread

FOLDERS = egraph/base egraph rules capture validate synth
LIB_SRC := $(foreach d,$(FOLDERS),$(wildcard $(d)/*.c))
CLI_SRC := $(wildcard cli/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)
EGRAPH_OBJ := $(filter $(B)/obj/egraph/%,$(LIB_OBJ))
SUPPORT_SRC := $(wildcard tests/support/*.c)
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/obj/%.o)

# Every tests/*/test_*.c is a Check program; those whose first line says "needs libtorch" are skipped with TORCH=0.
TEST_SRC := $(sort $(wildcard tests/*/test_*.c))
ifeq ($(TORCH),0)
TEST_SRC := $(shell grep -L 'needs libtorch' $(TEST_SRC) /dev/null 2>/dev/null | grep -v /dev/null)
endif
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

ifneq ($(TORCH),0)
SHIM = $(B)/libisomer_shim.so $(B)/libisomer_kernels.so
endif

.PHONY: all clean test
all: $(B)/isomer $(B)/libegraph.a $(SHIM)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(B)/libegraph.a: $(EGRAPH_OBJ)
	rm -f $@ && ar rcs $@ $^
$(B)/libisomer.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^

$(B)/isomer: $(CLI_OBJ) $(B)/libisomer.a
	$(CC) -rdynamic $(LDFLAGS) $^ $(LIBS) -o $@

# The flags of libtorch come from a script that looks where the README says.
$(B)/torch.mk: .ci/torch-flags
	@mkdir -p $(B)
	.ci/torch-flags > $@.tmp && mv $@.tmp $@
ifneq ($(TORCH),0)
ifneq ($(MAKECMDGOALS),clean)
-include $(B)/torch.mk
endif
endif
CXXFLAGS_TORCH = -std=c++17 -O2 -g -fPIC -Wall -Wno-unused-parameter -MMD -MP $(TORCH_CXXFLAGS)
$(B)/libisomer_shim.so: validate/shim.cc validate/shim.h rules/rules.h rules/tensor.h
	$(CXX) $(CPPFLAGS) $(CXXFLAGS_TORCH) -shared $< -o $@ $(TORCH_LDFLAGS)
$(B)/libisomer_kernels.so: validate/kernels/kernels.cc
	$(CXX) $(CPPFLAGS) $(CXXFLAGS_TORCH) -shared $< -o $@ $(TORCH_LDFLAGS)

$(B)/tests/%: $(B)/obj/tests/%.o $(SUPPORT_OBJ) $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ $(LIBS) -lcheck -lsubunit -lrt -o $@

clean:
	rm -rf $(B)
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_SRC:%.c=$(B)/obj/%.d)
