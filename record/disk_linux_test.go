package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of its own; only root may.
func smallDisk(t *testing.T, options string) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes all the room there is, and returns the file that does.
func fill(t *testing.T, dir string) string {
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte("x"), 4096))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	return name
}

// A disk that is really full, in the middle of writing.
func TestRealDiskFull(t *testing.T) {
	for _, mode := range []Mode{ModeBatch, ModeStrict} {
		t.Run(string(mode), func(t *testing.T) {
			dir := smallDisk(t, "size=1m,mode=0700")
			path := filepath.Join(dir, "record.db")
			s := openStore(t, Options{Path: path, Mode: mode}, faults{})
			s.queue.rows = 40
			require.NoError(t, s.Record(t.Context(), toolCall(t, 0)))
			onDisk(t, s)
			filler := fill(t, dir)
			n := 1
			eventually(t, func() bool {
				for range 20 {
					if err := s.Record(t.Context(), toolCall(t, n)); err != nil {
						require.Equal(t, ModeStrict, mode)
						require.ErrorContains(t, err, "record_")
					}
					n++
				}
				return s.Status().MissedTotal > 0
			}, "the disk is full")
			require.Equal(t, StateFailing, s.Status().State)
			require.NoError(t, os.Remove(filler))
			eventually(t, func() bool {
				return s.Status().State == StateOK && s.Status().Queued == 0 && len(s.Status().Missed) == 0
			}, "recovery is automatic")
			require.NoError(t, s.Record(t.Context(), toolCall(t, n)))
			missed := s.Status().MissedTotal
			closeStore(t, s)
			requireWhole(t, path)
			total := uint64(0)
			for _, g := range gaps(t, path) {
				total += g.Total
			}
			require.Equal(t, missed, total)
			require.EqualValues(t, n+1, uint64(len(decisions(t, openReader(t, path), Filter{})))+missed, "each is there or counted")
		})
	}
}

// A store that can't write does not come up half enabled.
func TestStartOnADiskThatCantBeWritten(t *testing.T) {
	dir := smallDisk(t, "size=512k,mode=0700")
	fill(t, dir)
	_, err := Open(Options{Path: filepath.Join(dir, "record.db")})
	require.Error(t, err)

	dir = smallDisk(t, "size=512k,mode=0700")
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err = Open(Options{Path: filepath.Join(dir, "record.db")})
	require.ErrorIs(t, err, unix.EROFS)
}
