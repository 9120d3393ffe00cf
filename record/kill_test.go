package record

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// victim records calls of eight agents until it is killed, and writes the id of
// each on stdout once Record has returned. In between it writes how far the
// record on the disk is.
func victim(path string, mode Mode) {
	s, err := Open(Options{Path: path, Mode: mode})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	stages := protocol.NewStageTable()
	var mu sync.Mutex
	say := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(words...)
	}
	for agent := range 8 {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), agent, n)
				if err := s.Record(context.Background(), mixedCall(stages, id, n)); err != nil {
					say("error", err)
				}
				say("recorded", id)
				if mode == ModeBatch {
					time.Sleep(time.Millisecond) // else all is over before the first commit
				}
				if n%16 == 0 {
					say("seq", s.Status().Seq)
				}
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	os.Exit(1)
}

// kill runs a victim and kills it once it has recorded so many calls. It
// returns their ids and the highest number that was on the disk.
func kill(t *testing.T, path string, mode Mode, after int) (ids []string, seq uint64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RECORD_TEST_VICTIM="+path, "RECORD_TEST_MODE="+string(mode))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "recorded":
			ids = append(ids, rest)
			if len(ids) == after {
				require.NoError(t, cmd.Process.Kill())
			}
		case "seq":
			n, err := strconv.ParseUint(rest, 10, 64)
			if err == nil { // else the line was cut
				seq = max(seq, n)
			}
		default:
			t.Error(lines.Text())
		}
	}
	_ = cmd.Wait()
	return ids, seq
}

// Again and again hookd is killed somewhere. In strict no call that was answered
// is missing; in batch none that was on the disk; each time the next start says
// so, and the chain verifies.
func TestKill(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBatch} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			path := recordPath(t)
			kills := 20
			if mode == ModeBatch || testing.Short() || raced {
				kills = 5
			}
			var acknowledged []string
			for n := range kills {
				ids, seq := kill(t, path, mode, 1+rand.IntN(1000))
				acknowledged = append(acknowledged, ids...)
				if n%5 == 4 {
					require.GreaterOrEqual(t, requireWhole(t, path).Last, seq)
				}
			}
			closeStore(t, openStore(t, Options{Path: path, Mode: mode}, faults{}))
			requireWhole(t, path)
			there := map[string]bool{}
			for _, d := range decisions(t, openReader(t, path), Filter{}) {
				there[d.CallID] = true
			}
			missing := 0
			for _, id := range acknowledged {
				if !there[id] {
					missing++
				}
			}
			t.Logf("%d calls were recorded, %d of them are missing, %d are in the file", len(acknowledged), missing, len(there))
			if mode == ModeStrict {
				require.Zero(t, missing)
			}
			unclean := 0
			for _, g := range gaps(t, path) {
				require.Equal(t, gapUnclean, g.What, g.Reason)
				require.Equal(t, mode == ModeBatch, g.AtMost == 100*time.Millisecond)
				unclean++
			}
			require.Equal(t, kills, unclean, "each is told")
		})
	}
}

// What a kill can take in batch is what came in the last 100 ms: by then all is
// on the disk.
func TestBatchIsOnDiskIn100ms(t *testing.T) {
	path := recordPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, Options{Path: path}, faults{})
		for n := range 200 { // a call every 7 ms
			require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
			require.LessOrEqual(t, s.Status().Lag, 100*time.Millisecond-batchDelay)
			time.Sleep(7 * time.Millisecond)
		}
		commits := s.Status().LastCommit
		time.Sleep(100 * time.Millisecond)
		st := s.Status()
		require.Zero(t, st.Queued)
		require.EqualValues(t, 200, st.Seq)
		require.WithinDuration(t, commits, st.LastCommit, 100*time.Millisecond)
		require.NoError(t, s.Close(t.Context()))
	})
}
