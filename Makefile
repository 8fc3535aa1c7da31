# The few words a newcomer types. Chores live in xtask: `cargo xtask`.

.DEFAULT_GOAL := help
.PHONY: help run test bench fmt man

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 8

run: ## build, then copy a real tree and a large file between nodes, and compare
	cargo build --release --locked
	bash demo/run.sh

test: ## everything that must hold before a change goes in; the tests come last
	bash tests/install-needs.sh
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p carrack --all-targets --no-default-features --locked -- -D warnings
	cargo xtask layers
	cargo xtask tidy
	cargo xtask packages
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo test --workspace --locked

bench: ## measure this host
	bash bench/run.sh

fmt: ## format the code
	cargo fmt

man: ## write manual pages and completions into target/man and target/completions
	cargo xtask man target/man
	cargo xtask completions target/completions
