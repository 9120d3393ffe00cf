package child

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asInit inherits orphans as the first process of a container does, and prints
// what became of them and of its own children.
func asInit() {
	const age = 100 * time.Millisecond
	s := newSpawner(Options{Adopt: true}, 5*time.Millisecond, age)
	defer s.Close()
	s.timing.leftover = 3 * age
	must := func(spec Spec) *Process {
		p, err := s.Start(context.Background(), spec)
		if err != nil {
			panic(err)
		}
		return p
	}

	// Its own child stays a zombie for longer than an orphan may, until its
	// group is gone.
	late := must(shell(`sleep 1000 & exit 7`))
	var orphans []int
	for range 5 {
		p := must(helper("escape", "sleep", "0.01"))
		line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
		if err != nil {
			panic(err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(line))
		orphans = append(orphans, pid)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && slices.ContainsFunc(orphans, exists); {
		time.Sleep(time.Millisecond)
	}
	<-late.Done()
	fmt.Println("late:", late.Exit())
	fmt.Println("orphans left:", slices.ContainsFunc(orphans, exists))
}

// exists reports whether a process runs or is a zombie.
func exists(pid int) bool { return unix.Kill(pid, 0) == nil }

func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	p := start(t, spawner(t, quick), helper("init"))
	require.Equal(t, "late: exit status 7\norphans left: false\n", readAll(t, p), "stderr: %q", p.StderrTail())
}

// children are those that somebody else will wait for.
type children map[int]bool

func (c children) owns(pid int) bool          { return c[pid] }
func (c children) serves(string, uint64) bool { return true }
func (c children) named(string) bool          { return false }

// isZombie reports whether a child of ours has ended and nobody has waited.
func isZombie(pid int) bool {
	return slices.ContainsFunc(offspring(false), func(p kin) bool { return p.pid == pid && p.zombie })
}

// Zombies that somebody will wait for are let alone, however old.
func TestOnlyOldOrphansAreReaped(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	eventually(t, "it is no zombie", func() bool { return isZombie(pid) })
	now := time.Now()
	// Not those of other tests either.
	others := func() children {
		all := children{}
		for _, p := range offspring(false) {
			all[p.pid] = p.pid != pid
		}
		return all
	}
	look := func(o *orphans, after time.Duration, ours children) {
		o.owner = ours
		o.look(now.Add(after), true)
	}
	o := newOrphans(time.Minute, others())
	look(o, 0, others())
	look(o, 59*time.Second, others())
	require.True(t, isZombie(pid))
	mine := others()
	mine[pid] = true
	look(o, time.Hour, mine)
	require.True(t, isZombie(pid))
	look(o, time.Hour, others()) // unclaimed anew
	require.True(t, isZombie(pid))
	look(o, time.Hour+time.Minute, others())
	require.False(t, isZombie(pid))
	require.ErrorIs(t, cmd.Wait(), unix.ECHILD)
}
