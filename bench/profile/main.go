// Command profile shows where hookd's time and memory go: it writes profiles of
// a daemon that is asked all the time, and says how to look at them.
//
//	go run ./bench/profile -o profiles
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hookd/hookd/bench"
	"github.com/hookd/hookd/child"
)

// asPart is the first argument of the processes that the bench starts.
const asPart = "__bench"

func main() {
	child.Main() // in a process that shall become a hook it does not return
	if len(os.Args) > 1 && os.Args[1] == asPart {
		if err := bench.Play(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	folder := flag.String("o", "profiles", "the `folder` to write into")
	calls := flag.Int("calls", 100_000, "how many calls are made on each path")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *folder, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string, calls int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	paths, err := bench.Profile(ctx, bench.Options{
		Program: []string{self, asPart}, Calls: max(calls/10, 1),
		Progress: func(_, work string) { fmt.Fprintf(os.Stderr, "%s, %d calls\n", work, calls) },
	}, folder)
	if err != nil {
		return err
	}
	fmt.Println("To look at them, or with -http=: in place of -top as a picture:")
	for _, path := range paths {
		more := ""
		if sample := "-allocs.prof"; len(path) > len(sample) && path[len(path)-len(sample):] == sample {
			more = " -sample_index=alloc_space"
		}
		fmt.Printf("  go tool pprof -top%s %s\n", more, path)
	}
	return nil
}
