package daemon

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForgetStart(t *testing.T) {
	mapped := func() int { // KiB of files
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(status), "RssFile:")
		require.True(t, found)
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		require.NoError(t, err)
		return n
	}
	path, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, program)
	var touched byte
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	parts := unchanged(smaps, path)
	require.NotEmpty(t, parts)
	for _, part := range parts { // as a start would
		for i := 0; i < len(part); i += 4096 {
			touched ^= part[i]
		}
	}
	before := mapped()
	forgetStart()
	after := mapped()
	require.Less(t, after, before/2, "of %d KiB; %d", before, touched)
	require.NotNil(t, newBook(), "the program goes on")
}

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-00401000 r-xp 00000000 fe:00 42                            /opt/the hookd
Size:                  4 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00401000-00402000 r--p 00001000 fe:00 42                            /opt/the hookd
Anonymous:             4 kB
Swap:                  0 kB
00402000-00403000 rw-p 00002000 fe:00 42                            /opt/the hookd
Anonymous:             0 kB
Swap:                  0 kB
00403000-00405000 r--p 00003000 fe:00 42                            /opt/the hookd
Anonymous:             0 kB
Swap:                  0 kB
00407000-00409000 r--p 00005000 fe:00 42                            /opt/the hookd
Anonymous:             0 kB
Swap:                  4 kB
00405000-00406000 r--p 00003000 fe:00 43                            /opt/another
Anonymous:             0 kB
Swap:                  0 kB
00406000-00407000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
Anonymous:             0 kB
Swap:                  0 kB
`
	var sizes []int
	for _, part := range unchanged([]byte(smaps), "/opt/the hookd") {
		sizes = append(sizes, len(part))
	}
	require.Equal(t, []int{4096, 8192}, sizes)
	require.Nil(t, memoryAt("2-1"))
	require.Nil(t, memoryAt("x-y"))
	require.Empty(t, unchanged([]byte("nonsense\n\nr\n"), "x"))
}
