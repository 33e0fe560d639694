# How the program gets to where it is used: make install, make wheel, make deb.
PREFIX ?= /usr/local
ISOMER_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' capture/pyproject.toml)
# Where each file goes below PREFIX: FOLDER MODE FILES. What is installed is what is taken away again.
INSTALLED = \
  "bin 755 $(B)/isomer" \
  "lib/isomer 755 $(SHIM)" \
  "share/isomer/rules 644 $(wildcard rules/*.rules)" \
  "include/egraph 644 egraph/egraph.h egraph/workload.h" \
  "include/egraph/base 644 egraph/base/error.h" \
  "lib 644 $(B)/libegraph.a" \
  "lib/pkgconfig 644 $(B)/egraph.pc" \
  "share/man/man1 644 $(wildcard docs/man/*.1)" \
  "share/man/man5 644 $(wildcard docs/man/*.5)" \
  "share/bash-completion/completions 644 docs/completion/isomer.bash" \
  "share/zsh/site-functions 644 docs/completion/_isomer" \
  "share/fish/vendor_completions.d 644 docs/completion/isomer.fish" \
  "share/doc/isomer 644 README.md LICENSE"
AT = $(DESTDIR)$(PREFIX)

install: all $(B)/libegraph.so $(B)/egraph.pc
	@for line in $(INSTALLED); do set -- $$line; folder=$$1 mode=$$2; shift 2; [ $$# -eq 0 ] || \
	  { install -d $(AT)/$$folder && install -m $$mode "$$@" $(AT)/$$folder/; } || exit 1; done
	@mv $(AT)/share/bash-completion/completions/isomer.bash $(AT)/share/bash-completion/completions/isomer
	@install -m 755 $(B)/libegraph.so $(AT)/lib/libegraph.so.$(EGRAPH_VERSION)
	@ln -sf libegraph.so.$(EGRAPH_VERSION) $(AT)/lib/libegraph.so.0
	@ln -sf libegraph.so.0 $(AT)/lib/libegraph.so
	@echo 'installed in $(AT); the rules for --rules are in $(AT)/share/isomer/rules'
# Folders that others may use stay, unless they are empty.
uninstall:
	@for line in $(INSTALLED); do set -- $$line; folder=$$1; shift 2; \
	  for f in "$$@"; do rm -f $(AT)/$$folder/$${f##*/}; done; done
	@rm -f $(AT)/share/bash-completion/completions/isomer $(AT)/lib/libegraph.so*
	@cd $(AT) && rmdir -p --ignore-fail-on-non-empty bin lib/isomer lib/pkgconfig include/egraph/base share/isomer/rules \
	  share/doc/isomer share/man/man1 share/man/man5 share/bash-completion/completions share/zsh/site-functions share/fish/vendor_completions.d 2> /dev/null; true

# The program as others take it with them: the libraries that not every machine has are in it, and none of their names
# is seen by libtorch, which has its own of some.
STATIC = $(patsubst -l%,%,$(filter-out -ldl -lm -lpthread,$(LIBS)))
$(B)/portable/isomer: $(SATURATE_OBJ) $(CLI_OBJ) $(B)/libisomer.a
	@mkdir -p $(@D)
	$(CC) -rdynamic $(LDFLAGS) $^ -Wl,-Bstatic $(STATIC:%=-l%) -Wl,-Bdynamic $(STATIC:%=-Wl,--exclude-libs,lib%.a) \
	  -ldl -lm -lpthread -o $@
	strip $@

# What the shim is built from where its libtorch is another: its sources and the headers that they include.
SHIM_PARTS = .ci/torch-flags .ci/build-shim $(wildcard validate/exec/*.cc validate/exec/kernels/*.cc) \
  $(shell $(CXX) -std=c++17 -MM -MG -I. $(wildcard validate/exec/*.cc validate/exec/kernels/*.cc) 2> /dev/null | \
    tr ' \\' '\n\n' | grep -E '^(validate|rules|egraph|capture)/.*\.h$$' | sort -u)

wheel: $(B)/portable/isomer $(B)/libegraph.so $(SHIM)
	@.ci/make-wheel $(B) "$(TORCH_FROM)" $(SHIM_PARTS)
deb: $(B)/portable/isomer
	@.ci/make-deb $(B) $(ISOMER_VERSION) $(SHIM_PARTS)
