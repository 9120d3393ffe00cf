# Everything here is a shortcut for a go command; see README.md.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all test race lint build cross bench update dist fuzz

all: lint build test

test:
	go test ./...

race:
	go test -race ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these files'; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

build:
	CGO_ENABLED=0 go build ./...

cross:
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/hookd
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/hookd
	GOOS=darwin GOARCH=arm64 go vet ./...

# Speed, each target beside the floor measured in the same run; see docs/performance.md.
bench:
	go run ./cmd/hookd bench

# Every fuzz target there is, one after the other, each for FUZZTIME.
FUZZTIME ?= 10m
fuzz:
	@grep -rEo '^func Fuzz\w+' --include='*_test.go' . | sort | while IFS=: read -r file func; do \
		target=$${func#func }; echo "$$target in $$(dirname "$$file")"; \
		go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

# Rewrites golden files and schemas after a wanted change; read the diff.
update:
	go test ./protocol ./manager ./config ./docs ./examples/agent -update
	UPDATE_SCRIPTS=1 go test ./cmd/hookd/cli
	go run ./docs/img

# The files of a release, in dist/: archives, bills of materials, checksums.
dist:
	packaging/dist.sh
