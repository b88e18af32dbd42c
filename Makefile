# `make` lists what there is. Nothing here is needed to use fsmgen: plain
# `go test ./...` works with nothing but Go and a C compiler.
.DEFAULT_GOAL := help

# The concurrent packages.
CONCURRENT := ./engine/... ./persistence/... ./examples/...

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## run all tests on every database that is installed, starting it if need be
	@bash .ci/test ./...

.PHONY: test-short
test-short: ## run the short form of all tests, databases as they are
	go test -short ./...

.PHONY: test-plain
test-plain: ## run go test ./... as a newcomer would; servers that are not there are left out
	go test ./...

.PHONY: race
race: ## run the concurrent packages under the race detector
	@bash .ci/test -race -short $(CONCURRENT)

.PHONY: lint
lint: ## run golangci-lint, installing it if need be
	@bash .ci/run format vet lint

.PHONY: fmt
fmt: ## format the code as the linter wants it
	$$(go env GOPATH)/bin/golangci-lint fmt

.PHONY: generate
generate: ## regenerate the examples' packages
	go generate ./...

.PHONY: verify
verify: ## regenerate, and fail if that changes a file
	@bash .ci/verify

.PHONY: bench
bench: ## run every benchmark once
	@bash .ci/run benchmarks

.PHONY: size
size: ## report how long files are
	@bash .ci/size

.PHONY: ci
ci: ## run everything that CI runs (installs what is missing)
	@bash .ci/run
