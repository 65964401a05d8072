# weir: derived data for DynamoDB tables, kept exactly right.

GO ?= go
SCHEDULES ?= 5000
DOUBLES ?= 3000
KILLS ?= 500
export CGO_ENABLED ?= 0

.PHONY: help build demo test soak race kill conform notice attack planted sim exhaustive bench bench-aws bench-peers lambda-size release module record cli clean

help: ## what can be made; .ci/run is the full check, .ci/run gofmt vet tools lint vuln the linters
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 11

build: ## the program weir, into bin/
	@test -d bin || echo "building; the first time, this takes a minute or two"
	@$(GO) build -o bin/ ./cmd/weir

demo: build ## replay the recorded streams into demo-data, then ask questions
	@./scripts/demo.sh

# Tests often wait, for a disk or a clock, so twice as many packages as there are cores run at a time.
test: ## every test that needs nothing but Go, with loops in their short form: three minutes on two cores
	$(GO) test -short -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) ./...

soak: ## the long form of all tests, hours of it: loops, kills, a death at every call, fuzzing; SOAK_S=420 make soak is seconds of it
	.ci/soak

# What make race leaves out: packages that start no goroutine, nor do their tests; tests that say that they
# are soaktest.Calm; and scripts. It does not vet (make test does) what it would have to compile again for that,
# and -short cuts down loops that do the same again, one after the other.
CALM := internal internal/aggregate internal/contribution internal/deploy internal/doctor internal/function internal/model internal/owntable internal/projections internal/projections/copies internal/projections/kinds internal/projections/set internal/projections/tally internal/query internal/sample internal/scratch internal/search internal/sim internal/sorter internal/store internal/value internal/summed internal/writeapi
race: PATH_OF = $(shell $(GO) list -m)
race: ## the same in short, with the race detector, which needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -short -vet=off -p 4 -parallel 4 -timeout 30m \
		$(filter-out $(CALM:%=$(PATH_OF)/%) $(PATH_OF)/scripts/%,$(shell $(GO) list ./...))

kill: ## kill -9 at KILLS random moments of replays, ingests and followers, which go on each time
	$(GO) test ./internal/system -run '^TestKill$$' -count 1 -v -timeout 30m -kills $(KILLS)

conform: ## both drivers of store and search, against the real servers (needs java)
	./scripts/conform.sh

attack: build ## keys, hostile bodies, silent connections, one row by many, kill -9, damaged files: five minutes at most
	$(GO) run ./scripts/attack $(ATTACK)

notice: ## write NOTICE again: the modules that are linked, with their licences
	$(GO) run ./scripts/licences

sim: ## thousands of schedules in a simulated world in which everything goes wrong, with builds, and with replays in bulk
	$(GO) test ./internal/sim -run '^TestFull$$' -count 1 -v -timeout 30m -schedules $(SCHEDULES)

exhaustive: ## a process dies at every call of a store and an index, in each model's golden scenario, and at pairs
	$(GO) test ./internal/sim -run '^TestEveryCut$$' -count 1 -v -timeout 30m -exhaustive -doubles $(DOUBLES)

planted: ## mistakes planted one by one, and the seed that notices each: docs/planted-bugs.md
	$(GO) run ./scripts/planted

bench: build ## the goals of replays, and speed and memory beside their peers
	./scripts/bench.sh

bench-peers: build ## the same counts by SQLite, and decoding alone
	./scripts/peers.sh

bench-aws: ## speed and write units beside the handlers that people write, on DynamoDB Local (needs java)
	./scripts/bench-aws.sh

lambda-size: ## the programs as Lambda loads them: size, start to the first record, memory
	./scripts/lambda-size.sh

release: ## all files of a release, into dist/: make release VERSION=0.1.0; RELEASE=-twice builds all again and compares
	$(GO) run ./scripts/release -version "$(VERSION)" $(RELEASE)

module: ## change the module path, in go.mod and in each import: make module MODULE=example.org/weir
	@test -n "$(MODULE)" || { echo "say which: make module MODULE=example.org/weir"; exit 2; }
	old=$$($(GO) list -m) && $(GO) mod edit -module "$(MODULE)" && \
		git ls-files '*.go' | xargs sed -i -e "s|\"$$old/|\"$(MODULE)/|g" -e "s|^\(import \)*\([[:space:]]*\)\"$$old\"$$|\1\2\"$(MODULE)\"|" && gofmt -w *.go cmd examples internal models scripts weirtest

record: ## make testdata/streams again, from the real DynamoDB Local
	scripts/dynamodb-local.sh start 8000
	$(GO) run ./scripts/record -model all -endpoint http://127.0.0.1:8000
	scripts/dynamodb-local.sh stop 8000

cli: ## write docs/guide/cli.md again, from --help
	$(GO) run ./scripts/clihelp

clean: ## remove what was made
	rm -rf bin demo-data
