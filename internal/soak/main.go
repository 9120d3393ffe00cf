// Command soak runs a real daemon for as long as one likes, with agents that ask
// all the time and something that goes wrong every second, and says in the end
// what happened and whether everything held that must hold:
//
//	go run ./internal/soak -for 30m
//
// It exits with 1 when something did not hold. Faults are chosen at random; the
// seed is printed, and -seed plays them in the same order again. Which hook they
// meet depends on who is well at the time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hookd/hookd/child"
)

// asDaemon is the first argument of the process that is the daemon.
const asDaemon = "daemon"

// options say what to run.
type options struct {
	length time.Duration // with faults
	calm   time.Duration // before, without
	every  time.Duration // a fault
	agents int
	seed   uint64
	only   string // faults whose name holds this
	keep   bool   // the folder
}

func main() {
	helper := child.Main() // in a process that shall become a hook it does not return
	if len(os.Args) == 3 && os.Args[1] == asDaemon {
		if err := beDaemon(os.Args[2], helper); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o := options{}
	flag.DurationVar(&o.length, "for", 2*time.Minute, "how long things go wrong")
	flag.DurationVar(&o.calm, "calm", 15*time.Second, "how long they do not before, to know how it is then")
	flag.DurationVar(&o.every, "every", time.Second, "time from fault to fault")
	flag.IntVar(&o.agents, "agents", 64, "how many agents ask")
	flag.Uint64Var(&o.seed, "seed", 0, "which faults; 0: others each time")
	flag.StringVar(&o.only, "only", "", "only faults whose name holds this `text`")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with the config and the log")
	flag.Parse()
	if len(kinds(o.only)) == 0 {
		fmt.Fprintf(os.Stderr, "soak: no fault is called %q\n", o.only)
		os.Exit(2)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run soaks and prints the report. The error says that it could not be done, or
// which invariants did not hold.
func run(ctx context.Context, o options) (err error) {
	fmt.Printf("soak: %s with a fault every %s, %d agents, seed %d\n", o.length, o.every, o.agents, o.seed)
	h, err := start(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	s := newSoak(o, h)
	r, err := s.run(ctx)
	if err != nil {
		return err
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	return r.verdict()
}
