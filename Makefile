# weir: derived data for DynamoDB tables, kept exactly right.

GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build demo test race conform lint bench record clean

build: ## both the program and nothing else
	@$(GO) build -o bin/ ./cmd/...

demo: build ## replay the recorded streams, then ask
	@./scripts/demo.sh

test: ## everything that needs nothing but Go
	$(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race -short ./...

conform: ## both drivers of store and search, against the real servers; exits 77 without java
	./scripts/conform.sh

lint:
	gofmt -l . | (! grep .)
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

bench: build ## speed and memory beside their peers
	./scripts/bench.sh

record: ## make testdata/streams again, from the real DynamoDB Local
	./scripts/record.sh

clean:
	rm -rf bin demo-data
