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
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	const age = 100 * time.Millisecond
	s := newSpawner(5*time.Millisecond, age)
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

// Zombies that somebody will wait for are let alone, however old.
func TestOnlyOldOrphansAreReaped(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	eventually(t, "it is no zombie", func() bool { return slices.Contains(zombies(), cmd.Process.Pid) })
	now := time.Now()
	o := orphans{age: time.Minute}
	nobodys, somebodys := func(int) bool { return false }, func(pid int) bool { return pid == cmd.Process.Pid }
	o.reap(now, nobodys)
	o.reap(now.Add(59*time.Second), nobodys)
	require.Contains(t, zombies(), cmd.Process.Pid)
	o.reap(now.Add(time.Hour), somebodys)
	require.Contains(t, zombies(), cmd.Process.Pid)
	o.reap(now.Add(time.Hour), nobodys) // unclaimed anew
	require.Contains(t, zombies(), cmd.Process.Pid)
	o.reap(now.Add(time.Hour+time.Minute), nobodys)
	require.NotContains(t, zombies(), cmd.Process.Pid)
	require.ErrorIs(t, cmd.Wait(), unix.ECHILD)
}
