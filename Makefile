# The few words a newcomer types. Chores live in xtask: `cargo xtask`.

.DEFAULT_GOAL := help
.PHONY: help run test bench fmt man program agents release install uninstall

# Sent to ssh hosts that have no carrack; the full program carries them.
AGENTS := $(CURDIR)/target/agents

# Where `make install` puts the program, and what it puts there. DESTDIR stands before PREFIX: the root of a package.
PREFIX ?= /usr/local
DESTDIR ?=
PROGRAM ?= target/release/carrack
place = $(DESTDIR)$(PREFIX)

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

run: program ## build, then copy a real tree and a large file between nodes, and compare
	bash demo/run.sh

program: agents ## build target/release/carrack, with the agents for other hosts inside
	CARRACK_AGENTS=$(AGENTS) cargo build --release --locked

agents: ## build what hosts without carrack are sent, for each kind of host whose Rust library is installed
	cargo xtask agents

test: ## everything that must hold before a change goes in; the tests come last
	bash tests/install-needs.sh
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p carrack --all-targets --no-default-features --locked -- -D warnings
	cargo clippy -p carrack-core -p carrack-engine --locked -- -D warnings
	cargo clippy -p carrack-face --all-targets --locked -- -D warnings
	cargo xtask layers
	cargo xtask tidy
	cargo xtask packages
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	$(MAKE) agents
	cargo test -p carrack-face --locked
	CARRACK_AGENTS=$(AGENTS) cargo test --workspace --exclude carrack-face --locked --no-run
	node tests/page/node_modules/typescript/bin/tsc -p crates/carrack-service/page
	node --test --test-reporter=spec tests/page/*.test.mjs
	bash tests/python.sh
	bash tests/packages/check.sh
	@# Twice as many as there are processors: most tests wait for most of their time. All are run, whatever fails.
	RUST_TEST_THREADS=$$(($$(nproc) * 2)) CARRACK_AGENTS=$(AGENTS) cargo test --workspace --exclude carrack-face --locked --no-fail-fast

bench: ## measure this host
	bash bench/run.sh

fmt: ## format the code
	cargo fmt

man: program ## write manual pages and completions into target/man and target/completions
	CARRACK_AGENTS=$(AGENTS) cargo xtask man target/man
	CARRACK_AGENTS=$(AGENTS) cargo xtask completions target/completions

release: agents ## build tarball, deb, rpm, wheel, what they contain, and checksums into target/packages
	CARRACK_AGENTS=$(AGENTS) cargo xtask release

install: ## put program, manual, completions, documents and units below PREFIX=/usr/local; builds nothing
	@test -x $(PROGRAM) || { echo "there is no $(PROGRAM) yet: make program" >&2; exit 1; }
	install -d $(place)/bin $(place)/share/man/man1 $(place)/share/bash-completion/completions \
		$(place)/share/zsh/site-functions $(place)/share/fish/vendor_completions.d \
		$(place)/share/doc/carrack/docs/internals \
		$(place)/lib/systemd/system $(place)/lib/sysusers.d $(place)/lib/carrack/names
	install -m 755 $(PROGRAM) $(place)/bin/carrack
	ln -sf ../../../bin/carrack $(place)/lib/carrack/names/bbcp
	ln -sf ../../../bin/carrack $(place)/lib/carrack/names/globus-url-copy
	$(PROGRAM) man $(place)/share/man/man1
	$(PROGRAM) completions bash >$(place)/share/bash-completion/completions/carrack
	$(PROGRAM) completions zsh >$(place)/share/zsh/site-functions/_carrack
	$(PROGRAM) completions fish >$(place)/share/fish/vendor_completions.d/carrack.fish
	install -m 644 README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE contrib/packages/carrack.toml \
		$(place)/share/doc/carrack
	install -m 644 docs/*.md docs/*.json $(place)/share/doc/carrack/docs
	install -m 644 docs/internals/*.md $(place)/share/doc/carrack/docs/internals
	sed 's,/usr/bin/carrack,$(PREFIX)/bin/carrack,' contrib/systemd/carrack.service \
		>$(place)/lib/systemd/system/carrack.service
	install -m 644 contrib/systemd/carrack.socket $(place)/lib/systemd/system
	install -m 644 contrib/systemd/sysusers.conf $(place)/lib/sysusers.d/carrack.conf
	chmod -R u=rwX,go=rX $(place)/share/man/man1/carrack*.1 $(place)/share/bash-completion/completions/carrack \
		$(place)/share/zsh/site-functions/_carrack $(place)/share/fish/vendor_completions.d/carrack.fish \
		$(place)/lib/systemd/system/carrack.service

uninstall: ## remove what make install has put below PREFIX; configuration and state stay
	rm -f $(place)/bin/carrack $(place)/share/man/man1/carrack.1* $(place)/share/man/man1/carrack-*.1* \
		$(place)/share/bash-completion/completions/carrack $(place)/share/zsh/site-functions/_carrack \
		$(place)/share/fish/vendor_completions.d/carrack.fish $(place)/lib/systemd/system/carrack.service \
		$(place)/lib/systemd/system/carrack.socket $(place)/lib/sysusers.d/carrack.conf
	rm -rf $(place)/share/doc/carrack $(place)/lib/carrack/names
