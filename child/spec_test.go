package child

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnviron(t *testing.T) {
	t.Parallel()
	hookd := map[string]string{
		"PATH": "/bin", "HOME": "/root", "LANG": "C", "LC_ALL": "C.UTF-8", "LC_EVIL": "x", "TZ": "UTC", "TMPDIR": "",
		"API_KEY": "secret", "AWS_TOKEN": "secret", "LD_PRELOAD": "/x.so", "DYLD_INSERT_LIBRARIES": "/x", "NODE_OPTIONS": "--require x",
		"PYTHONPATH": "/x", "PYTHONSTARTUP": "/x", "BASH_ENV": "/x", "NOTIFY_SOCKET": "/n", "LISTEN_FDS": "1", "LISTEN_PID": "1",
		"WATCHDOG_USEC": "1", "HOOKD_CONTROL_SOCKET": "/c", "HOOKD_SOCKET": "/s", "HOOKD_HOOK": "outer",
	}
	base := []string{"HOME=/root", "HOOKD_HOOK=gate", "LANG=C", "LC_ALL=C.UTF-8", "PATH=/bin", "TMPDIR=", "TZ=UTC"}
	dangerous := []string{
		"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "NOTIFY_SOCKET",
		"LISTEN_FDS", "LISTEN_PID", "WATCHDOG_USEC", "HOOKD_CONTROL_SOCKET", "HOOKD_SOCKET", "HOOKD_HOOK",
	}
	for name, test := range map[string]struct {
		spec     Spec
		want     []string // besides base
		withheld []string
	}{
		"nothing else is inherited":       {},
		"a named variable is passed":      {spec: Spec{PassEnv: []string{"API_KEY"}}, want: []string{"API_KEY=secret"}},
		"an unset variable stays unset":   {spec: Spec{PassEnv: []string{"NO_SUCH"}}},
		"names are not patterns":          {spec: Spec{PassEnv: []string{"AWS_*"}}},
		"dangerous names are withheld":    {spec: Spec{PassEnv: dangerous}, withheld: dangerous},
		"similar names are not dangerous": {spec: Spec{PassEnv: []string{"LD", "NODE_OPTIONS_X", "API_KEY"}}, want: []string{"API_KEY=secret"}},
		"set on purpose":                  {spec: Spec{Env: map[string]string{"LD_PRELOAD": "/mine.so"}}, want: []string{"LD_PRELOAD=/mine.so"}},
		"env beats pass_env": {
			spec: Spec{PassEnv: []string{"API_KEY"}, Env: map[string]string{"API_KEY": "a=b"}},
			want: []string{"API_KEY=a=b"},
		},
		"env beats withholding": {
			spec:     Spec{PassEnv: []string{"PYTHONPATH"}, Env: map[string]string{"PYTHONPATH": "/lib"}},
			want:     []string{"PYTHONPATH=/lib"},
			withheld: []string{"PYTHONPATH"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.spec.Name = "gate"
			got := Environ(test.spec, func(name string) (string, bool) { value, ok := hookd[name]; return value, ok })
			require.ElementsMatch(t, append(test.want, base...), got)
			require.IsIncreasing(t, got)
			require.ElementsMatch(t, test.withheld, Withheld(test.spec))
		})
	}
}

func TestEnvironWithoutAnythingIsNotNil(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"HOOKD_HOOK="}, Environ(Spec{}, func(string) (string, bool) { return "", false }))
}

// What arrives in a real child is Environ and nothing more.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("HOOKD_CONTROL_SOCKET", "/run/control.sock")
	t.Setenv("SECRET", "s3cret")
	t.Setenv("WANTED", "yes")
	t.Setenv("LC_ALL", "C")
	bothWays(t, quick, childEnvironment)
}

func childEnvironment(t *testing.T, s *Spawner) {
	p := start(t, s, Spec{Name: "gate", Argv: []string{"env"}, PassEnv: []string{"WANTED"}, Env: map[string]string{"OWN": "1"}})
	out := readAll(t, p)
	require.Contains(t, out, "HOOKD_HOOK=gate\n")
	require.Contains(t, out, "WANTED=yes\n")
	require.Contains(t, out, "OWN=1\n")
	require.Contains(t, out, "LC_ALL=C\n")
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, "=")
		require.Contains(t, append([]string{"HOOKD_HOOK", "WANTED", "OWN"}, inherited...), name)
	}
}
