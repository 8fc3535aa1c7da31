# The few words a newcomer types. Chores live in xtask: `cargo xtask`.

.DEFAULT_GOAL := help
.PHONY: help run test bench fmt man program agents

# Sent to ssh hosts that have no carrack; the full program carries them.
AGENTS := $(CURDIR)/target/agents

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 8

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
	@# One more than there are processors: most tests wait for most of their time. All are run, whatever fails.
	RUST_TEST_THREADS=$$(($$(nproc) + 1)) CARRACK_AGENTS=$(AGENTS) cargo test --workspace --exclude carrack-face --locked --no-fail-fast

bench: ## measure this host
	bash bench/run.sh

fmt: ## format the code
	cargo fmt

man: program ## write manual pages and completions into target/man and target/completions
	CARRACK_AGENTS=$(AGENTS) cargo xtask man target/man
	CARRACK_AGENTS=$(AGENTS) cargo xtask completions target/completions
