package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/internal/fault"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (here, there *net.UnixConn) {
	dir, err := os.MkdirTemp("/tmp", "fault")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"}
	l, err := net.ListenUnix("unix", at)
	require.NoError(t, err)
	defer l.Close()
	here, err = net.DialUnix("unix", nil, at)
	require.NoError(t, err)
	there, err = l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name         string
		script       []string
		answer       string
		sent, prints string
	}{
		{"lines", []string{"send=a", "raw=b", "raw=c\n"}, "", "a\nbc\n", ""},
		{"pieces", []string{"drip=1us:abc", "flood=3:n$N", "pad=70000"}, "", "abcn1\nn2\nn3\n" + strings.Repeat("x", 70000), ""},
		{"reads", []string{"send=q", "read", "read=2", "close", "send=never"}, "1\n2\n3\n4\n", "q\n", "1\n2\n3\n"},
		{"half-close", []string{"send=q", "half-close", "rest"}, "1\n", "q\n", "1\nclosed\n"},
		{"listens", []string{"listen", "send=q", "half-close", "rest"}, "1\n2\n", "q\n", "1\n2\nclosed\n"},
		{"too little", []string{"half-close", "read=2", "send=never"}, "1\n", "", "1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := pair(t)
			var prints bytes.Buffer
			played := make(chan error, 1)
			go func() { played <- newPlayer(here, &prints).play(tt.script) }()
			if tt.answer != "" {
				_, err := io.WriteString(there, tt.answer)
				require.NoError(t, err)
			}
			sent := make([]byte, len(tt.sent))
			_, err := io.ReadFull(there, sent)
			require.NoError(t, err)
			require.Equal(t, tt.sent, string(sent))
			if strings.Contains(strings.Join(tt.script, " "), "half-close") {
				require.NoError(t, there.Close())
			}
			require.NoError(t, <-played)
			require.Equal(t, tt.prints, prints.String())
		})
	}
}

func TestScriptsThatMeanNothing(t *testing.T) {
	for _, script := range []string{"sned=x", "flood=x:y", "wait=long", "pad=much", "read=all", "drip=x:y"} {
		here, _ := pair(t)
		require.Error(t, newPlayer(here, io.Discard).play([]string{script}), script)
	}
	require.ErrorContains(t, run("", "slowlory", "bash", nil), `unknown mode "slowlory", one of leaves, `)
	require.ErrorContains(t, run("", "", "bash", nil), "nothing to do")
	require.Error(t, run("/no/such/socket", "leaves", "bash", nil))
}

// When the other side closes, an agent stops writing, and that is no error.
func TestClosedByTheOtherSide(t *testing.T) {
	for _, a := range fault.Agents("bash") {
		if a.Name == "slowloris" || a.Name == "dies" || a.Name == "silent" || a.Name == "deaf" {
			continue // they take their time
		}
		t.Run(a.Name, func(t *testing.T) {
			here, there := pair(t)
			require.NoError(t, there.Close())
			require.NoError(t, newPlayer(here, io.Discard).play(a.Script))
		})
	}
}
