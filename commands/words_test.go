package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// TestMissingScript: an interpreter without its script gives no verdict, however
// the script is named.
func TestMissingScript(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "is here.py")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	known := map[string]string{"HOME": dir, "PWD": dir, "CLAUDE_PROJECT_DIR": "/nope/project"}
	for line, want := range map[string]string{
		`python3 /nope.py`:                        "/nope.py",
		`python3 x.py`:                            dir + "/x.py",
		`python3 ~/x.py`:                          dir + "/x.py",
		`python3 "$CLAUDE_PROJECT_DIR"/nope.py`:   "/nope/project/nope.py",
		`python3 "${CLAUDE_PROJECT_DIR}/nope.py"`: "/nope/project/nope.py",
		`python3 $CLAUDE_PROJECT_DIR/nope.py -v`:  "/nope/project/nope.py",
		`python3 ${UNKNOWN:-/nope}/x.py`:          "",
		`python3 '/nope/x y.py'`:                  "/nope/x y.py",
		`python3 /no\pe.py`:                       "/nope.py",
		`python3 "/no\pe.py"`:                     `/no\pe.py`,
		`python3 -u /nope/x.py`:                   "/nope/x.py",
		`python3.12 -uB -I /nope/x.py`:            "/nope/x.py",
		`python3 -W ignore /nope/x.py`:            "/nope/x.py",
		`python3 -- /nope/x.py`:                   "/nope/x.py",
		`dash /nope.sh`:                           "/nope.sh",
		`bash -eu -o pipefail /nope.sh`:           "/nope.sh",
		`bash --norc /nope.sh`:                    "/nope.sh",
		`/usr/bin/env python3 /nope.py`:           "/nope.py",
		`/usr/bin/env -S python3 -u /nope.py`:     "/nope.py",
		`env A=b python3 /nope.py`:                "/nope.py",
		`A=b exec python3 /nope.py`:               "/nope.py",

		// There, or nobody can tell.
		`python3 'is here.py'`:             "",
		`python3 ~/"is here.py"`:           "",
		`python3 is\ here.py`:              "",
		`python3`:                          "",
		`python3 -`:                        "",
		`python3 -m x`:                     "",
		`python3 -c 'print()'`:             "",
		`python3 -uc 'print()'`:            "",
		`python3 -X dev`:                   "",
		`python3 --new-option /nope.py`:    "",
		`bash -c /nope.sh`:                 "",
		`bash -s /nope.sh`:                 "",
		`node --require /nope.js /nope.js`: "",
		`python3 $NOBODY_KNOWS/x.py`:       "",
		`python3 /nope*.py`:                "",
		`python3 "$(pwd)/x.py"`:            "",
		"python3 `pwd`/x.py":               "",
		`cd /tmp && python3 x.py`:          "",
		`python3 /nope.py || exit 0`:       "",
		`python3 ~root/nope.py`:            "",
		`python3 "/nope.py`:                "",
		`cat /nope.py`:                     "",
		``:                                 "",
	} {
		require.Equal(t, want, missingScript(plainWords(line, known), dir), line)
	}
	require.Equal(t, "/nope $X.py", missingScript([]string{"python3", "-u", "/nope $X.py"}, dir), "the exec form has no quotes")
}

func TestMissingScriptIsAFailure(t *testing.T) {
	for _, line := range []string{`python3 "$CLAUDE_PROJECT_DIR"/nope.py`, `python3 '/nope/x.py'`, `dash /nope.sh`, `/usr/bin/env python3 /nope.py`} {
		h := only(t, oneCommand(t, "PreToolUse", line), newRunner(t, 0))
		_, err := h.Roles.Interceptor.Intercept(t.Context(), asked(t, protocol.StageBeforeTool, bash))
		require.Equal(t, protocol.OutcomeSpawnFailed, outcome(err), line)
		require.Equal(t, hook.FailContinue, h.FailPolicy)
	}
}

func FuzzPlainWords(f *testing.F) {
	for _, line := range []string{`a 'b c' "d\"$HOME" ~/e`, `${HOME}`, `\`, `"`, `'`, "$", `${`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := plainWords(line, map[string]string{"HOME": "/h"})
		require.LessOrEqual(t, len(words), len(line))
		_ = scriptOf(words)
	})
}
