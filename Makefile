# Everything here is a shortcut for a go command; see README.md.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all test race lint build cross bench bench-peers profile soak fuzz update dist

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
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/hookd-hook
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/hookd
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/hookd-hook
	GOOS=darwin GOARCH=arm64 go vet ./...

# Speed, each target beside the floor measured in the same run; see docs/performance.md.
bench:
	go run ./cmd/hookd bench

# The same beside what others do in its place: a module of its own, which needs
# the network for the first time; see docs/performance.md.
bench-peers:
	cd bench/peers && go run -mod=mod .

# Where the time and the memory of a call go: profiles in profiles/.
profile:
	go run ./bench/profile -o profiles

# Agents, hooks and a daemon in which something goes wrong every second, for
# SOAKTIME; see docs/reliability.md.
SOAKTIME ?= 2m
soak:
	go run ./internal/soak -for $(SOAKTIME)

# Every fuzz target there is, each for FUZZTIME, FUZZJOBS of them at the same time.
FUZZTIME ?= 10m
FUZZJOBS ?= 2
fuzz:
	@grep -rEo '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|^(.*)/[^/]*:func (Fuzz\w+)$$|\1 \2|' | sort | \
		xargs -n 2 -P $(FUZZJOBS) .ci/fuzz $(FUZZTIME)

# Rewrites golden files and schemas after a wanted change; read the diff.
update:
	go test ./protocol ./manager ./config ./docs ./examples/agent -update
	UPDATE_SCRIPTS=1 go test ./cmd/hookd/cli
	go run ./docs/img

# The files of a release, in dist/: archives, bills of materials, checksums.
dist:
	packaging/dist.sh
