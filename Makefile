# The front door. Each target is a script of the same purpose in scripts/.
.DEFAULT_GOAL := help
.PHONY: help demo demo-ledger demo-maintenance reproduce image test-image up down check test attack lint generate bench-micro bench-tpch bench-durability bench-tpcc bench-waits bench-parts bench-sysbench bench-pgbench bench-keys bench-families bench-ledger bench-recording bench-ablations bench-grants bench-instructions bench-docs torture fuzz-sql fuzz-families fuzz-ledger fuzz-channel compat package compat-postgres compat-versions test-versions mutants trusted-base clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## install, build, start, load, and show what each side sees
	@scripts/deps
	@scripts/build
	@scripts/up
	@scripts/venv
	@demo/run

reproduce: ## build the keeper twice, in different folders: the same bytes; prints the measurement
	@scripts/deps
	@scripts/reproduce

image: package ## the image of a confidential guest, in target/image, with a table of its measurements: CONFIGURATION=dir
	@packaging/image/deps
	@packaging/image/build target/image "$${CONFIGURATION:?a directory with keeper.toml and clients (docs/attestation.md)}"

test-image: ## build such an image, and start it in QEMU with simulated evidence: minutes, as root
	@scripts/deps
	@packaging/image/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_IMAGE=1 .venv/bin/pytest -q tests/image

demo-ledger: ## edit a page of a ledger table as root, and show what is said of it
	@scripts/deps
	@scripts/build
	@scripts/up
	@demo/ledger

demo-maintenance: ## an administrator at work without a key, in execution mode: HEDB's cases, each checked
	@scripts/deps
	@scripts/build
	@scripts/traced --features seeded
	@CONFIDE_KEEPER_ADMINISTRATORS=app scripts/up
	@demo/maintenance

up: ## start whatever is down: keeper, PostgreSQL, proxy; MODE=software: without a keeper
	@scripts/deps
	@scripts/build
	@scripts/up

down: ## stop them
	@scripts/down

check: ## what a change needs, in under three minutes once built
	@scripts/deps
	@scripts/check

test: ## everything: lint, unit tests, model check, end to end
	@scripts/deps
	@scripts/test

lint: ## formatters, linters, freshness of generated files
	@scripts/deps
	@scripts/lint

generate: ## write the generated files from crates/contract and crates/catalog
	@cargo run --release -q -p catalog --bin generate

torture: ## crash everything under load, CYCLES times, from SEED
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_CYCLES=$${CYCLES:-20} CONFIDE_SEED=$${SEED:-1} .venv/bin/pytest -q -s tests/durability -k torture

fuzz-sql: ## QUERIES random queries: plain, row at a time and in batches agree; from SEED; WORKERS=0 or 4 to plan without or force them
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_QUERIES=$${QUERIES:-5000} CONFIDE_SEED=$${SEED:-1} CONFIDE_ONLY=$${ONLY:-} CONFIDE_WORKERS=$${WORKERS:-} .venv/bin/pytest -q -s tests/fuzz/test_queries.py

fuzz-families: ## QUERIES random queries on each of the families rnd_, rnd_…(det) and soft_: as on plain tables, or refused for a listed reason; from SEED
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_QUERIES=$${QUERIES:-500} CONFIDE_SEED=$${SEED:-1} .venv/bin/pytest -q -s tests/fuzz/test_families.py

fuzz-ledger: ## TRANSACTIONS random transactions on ledger tables of each kind: as on plain tables, with all versions in history and log; from SEED
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_TRANSACTIONS=$${TRANSACTIONS:-300} CONFIDE_SEED=$${SEED:-1} .venv/bin/pytest -q -s tests/ledger/test_random.py

fuzz-channel: ## a hostile backend: MESSAGES messages that have the form of the table, from SEED
	@scripts/deps
	@CONFIDE_FUZZ_MESSAGES=$${MESSAGES:-5000000} CONFIDE_SEED=$${SEED:-1} cargo test --release -q -p keeper --test it structured -- --nocapture

compat-postgres: ## PostgreSQL's own suites give what they give without Confide; ONLY=regress-proxy
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_COMPAT=1 .venv/bin/pytest -q tests/compat tests/clients/test_wide_encodings.py $(if $(ONLY),-k "$(ONLY)")

compat-versions: ## the extension and a part of the tests with other versions of PostgreSQL; VERSIONS=16.15.0
	@scripts/deps
	@scripts/build
	@scripts/venv
	@scripts/versions $(VERSIONS)

test-versions: ## all end-to-end tests with other versions of PostgreSQL; VERSIONS=17.11.0, ONLY=tests/batches
	@scripts/deps
	@scripts/build
	@scripts/venv
	@WHOLE=1 scripts/versions $(VERSIONS)

package: ## Debian packages of keeper, proxy and extension, in target/packages
	@scripts/deps
	@scripts/build
	@scripts/package

compat: ## drivers and ORMs see on protected columns what they see on plain ones; writes docs/compatibility.md
	@scripts/deps
	@scripts/build
	@scripts/venv
	@CONFIDE_UPDATE=1 .venv/bin/pytest -q tests/compat/test_clients.py $(if $(ONLY),-k "$(ONLY) or document")

attack: ## a superuser at play: attempts, successes, what the published profile allows
	@scripts/deps
	@scripts/build
	@scripts/venv
	@.venv/bin/pytest -q tests/attack tests/ledger/test_attacks.py tests/ledger/test_erase.py tests/ledger/test_receipts.py

trusted-base: ## lines of code that have to be trusted, by crate
	@scripts/trusted.py

mutants: ## take out one defence after the other; ONLY=word of list, file or test, FLAGS="--go-on --publish"
	@scripts/deps
	@scripts/venv
	@scripts/mutants $(if $(ONLY),--only "$(ONLY)") $(FLAGS)

bench-micro: ## the cost of one operation, each beside its floor
	@scripts/deps
	@scripts/build
	@scripts/bench-micro

bench-tpch: ## TPC-H beside plaintext: SF=0.1 ROUNDS=3 MODES=on,off SETTINGS=default WORKERS=0,2
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench tpch

bench-durability: ## space, commits, COPY, WAL and recovery beside plaintext: SECONDS=3 SF=0.1 WAL_MB=300
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench durability

bench-tpcc: ## TPC-C beside plaintext: W=1 CLIENTS=1,4,16 POLICIES=customer,weak,strong SECONDS=4
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench tpcc

bench-waits: ## what statements of TPC-C and sysbench wait for, by statement: POLICIES=customer,weak,strong TRANSACTIONS=230 WORKLOADS=read-write,range
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench waits

bench-parts: ## processor time and switches of short transactions, by process: CASES=tpcc-customer,sysbench-range CLIENTS=1,4 ROUNDS=3
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench parts

bench-sysbench: ## sysbench beside plaintext: ROWS=20000 CLIENTS=4 SECONDS=2 WORKLOADS=...
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench sysbench

bench-pgbench: ## pgbench through the proxy beside PgBouncer: CLIENTS=1,8 WORKLOADS=select,tpcb SECONDS=3 ROUNDS=3
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench pgbench

bench-families: ## bytes and short statements of each family, TPC-H on rnd_, the switch of soft_, and the encodings: ROWS=5000 SECONDS=1 ROUNDS=3 SF=0.01 ONLY=switch
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench families

bench-keys: ## index builds, ORDER BY and lookups by a protected key: ROWS=1000000 ROUNDS=3
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench keys

bench-ledger: ## ledger tables beside plaintext and plain Confide: ROWS=20000 ROUNDS=30 SIGNED=100 SIZES=1000,10000,100000 TURNS=4 SECONDS=30
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench ledger

bench-recording: ## cost of recordings on TPC-H and TPC-C, speed of replay and of anonymised calls: SF=0.1 ROUNDS=9 RUNS=5 SECONDS=2 CALLS=600
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench recording

bench-ablations: ## what each part of the design is worth: SF=0.1 ROUNDS=3 SHARES=100,50,25,10 PARTS=...
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench ablations

bench-grants: ## authorised statements on and off: SF=0.1 ROUNDS=8 REPEAT=3 ROWS=20000 SECONDS=2
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench grants

bench-instructions: ## instructions of the hot paths (callgrind), fails when they grew by 5 %
	@scripts/deps
	@BENCH_COMMAND="make $@ $(MAKEOVERRIDES)" scripts/bench instructions

bench-docs: ## figures of bench/results into docs/benchmarks.md
	@scripts/venv
	@PYTHONPATH=bench:tests .venv/bin/python bench/document.py

clean: ## stop, and remove what was built and stored
	@scripts/clean
