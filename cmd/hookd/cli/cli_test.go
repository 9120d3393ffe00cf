package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookd/hookd/cmd/hookd/cli"
	"github.com/hookd/hookd/thin"
)

// TestMain makes the test binary stand in for the hookd command, so that the
// scripts start real processes without a build.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hookd":      func() { cli.Main() },
		"hookd-hook": func() { os.Exit(thin.Main()) },
	})
}

// TestScript runs the transcripts in testdata/script. $SOCKETS is a folder with
// a short name, $EXAMPLES the folder of the example hooks.
func TestScript(t *testing.T) {
	examples, err := filepath.Abs("../../../examples/hooks")
	if err != nil {
		t.Fatal(err)
	}
	// Scripts have a home of their own, in which nothing has been compiled yet.
	cache, _ := exec.Command("go", "env", "GOCACHE").Output()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			sockets, err := os.MkdirTemp("/tmp", "hookd")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(sockets) })
			env.Setenv("SOCKETS", sockets)
			env.Setenv("HOOKD_SOCKET", filepath.Join(sockets, "hookd.sock"))
			env.Setenv("HOOKD_CONTROL_SOCKET", filepath.Join(sockets, "hookd.control.sock"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a second per command with -race
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"calluntil":   callUntil,
			"envsubst":    envSubst,
			"fileuntil":   fileUntil,
			"gone":        gone,
			"jq":          jq,
			"mask":        mask,
			"replace":     replace,
			"statusuntil": statusUntil,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// jq FILE PATH [VALUE] reads a value from JSON, such as hooks.log.state (items
// of an array go by their name); it must be VALUE, or with ! anything else.
// Without VALUE it is put into $VALUE.
func jq(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: jq FILE PATH [VALUE]")
	}
	got, err := at([]byte(ts.ReadFile(args[0])), args[1])
	ts.Check(err)
	if len(args) == 2 {
		ts.Setenv("VALUE", got)
	} else if (got == args[2]) == neg {
		ts.Fatalf("%s is %q", args[1], got)
	}
}

// at finds a value in JSON; what is no string is given as JSON.
func at(data []byte, path string) (string, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i := slices.IndexFunc(in, func(item any) bool { m, ok := item.(map[string]any); return ok && m["name"] == key })
			if i < 0 {
				return "", fmt.Errorf("%s: no item is named %q", path, key)
			}
			v = in[i]
		default:
			return "", fmt.Errorf("%s: nothing at %q", path, key)
		}
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// patience is how long another process may take to do what a script waits for.
const patience = 15 * time.Second

// until tries again and again. It is for what another process is about to do.
func until(ts *testscript.TestScript, what string, try func() bool) {
	for end := time.Now().Add(patience); !try(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("still not so: %s", what)
		}
	}
}

// statusuntil PATH VALUE waits until hookd status --json says so.
func statusUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: statusuntil PATH VALUE")
	}
	until(ts, strings.Join(args, " is "), func() bool {
		out, err := command(ts, "", "status", "--json").Output()
		if err != nil {
			return false
		}
		got, err := at(out, args[0])
		return err == nil && got == args[1]
	})
}

// calluntil PARAMS STAGE FILE PATTERN makes calls with the params in PARAMS
// until PATTERN stands in FILE; FILE stdout means the answer itself.
func callUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: calluntil PARAMS STAGE FILE PATTERN")
	}
	params := ts.ReadFile(args[0])
	pattern, err := regexp.Compile(args[3])
	ts.Check(err)
	until(ts, args[3], func() bool {
		out, err := command(ts, params, "call", args[1]).Output()
		if err == nil && args[2] != "stdout" {
			out, err = os.ReadFile(ts.MkAbs(args[2]))
		}
		return err == nil && pattern.Match(out)
	})
}

// command is a hookd command in the script's environment.
func command(ts *testscript.TestScript, stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command("hookd", args...)
	cmd.Path, cmd.Err = filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "hookd"), nil
	for _, name := range []string{"PATH", "HOME", "HOOKD_SOCKET", "HOOKD_CONTROL_SOCKET"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// envsubst FILE replaces ${NAME} in a file by variables of the script.
func envSubst(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// replace FILE OLD NEW changes a text in a file, written beside it and renamed
// over it as editors do.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	path := ts.MkAbs(args[0])
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path+".new", []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
	ts.Check(os.Rename(path+".new", path))
}

// fileuntil FILE PATTERN waits until PATTERN stands in FILE.
func fileUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fileuntil FILE PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	until(ts, args[1], func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(text)
	})
}

// gone FILE makes sure that the processes named in FILE, as "pid 12", have
// ended.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FILE")
	}
	pids := regexp.MustCompile(`pid (\d+)`).FindAllStringSubmatch(ts.ReadFile(args[0]), -1)
	if len(pids) == 0 {
		ts.Fatalf("%s names no process", args[0])
	}
	for _, m := range pids {
		pid, err := strconv.Atoi(m[1])
		ts.Check(err)
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			ts.Fatalf("process %d is still there: %v", pid, err)
		}
	}
}

// mask FILE replaces what differs from one demo to the next.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mask FILE")
	}
	text := ts.ReadFile(args[0])
	for _, m := range [][2]string{
		{`/\S*/hookd-demo-\d+`, "FOLDER"},
		{`\d{4}-\d\d-\d\dT[\d:]+Z`, "TIME"},
		{`\([\d.]+(µs|ms|s)\)`, "(TOOK)"},
		{`it (ended with|was killed by) [\w ]+`, "it ended"}, // how a hook ended is said when it is known in time
		{`\d{4}-\d\d-\d\d [\d:.]+`, "TIME"},
		{`took [\d.]+(µs|ms|s)`, "took SOME"},
		{`(?m)TOOK +(.*)$`, "TOOK  $1"}, // a column as wide as what is in it
		{`  +[\d.]+(µs|ms|s) +-`, "  SOME  -"},
		{`\bprocess \d+`, "process PID"},
		{`(?m)^hash( +)[0-9a-f]{64}`, "hash${1}HASH"},
		{`\b[a-z]{4}-[a-z]{4}-\d\d\b`, "TICKET"},
		{`\b\d+ s left`, "N s left"},
		{`\S+ \(uid \d+\)`, "SOMEBODY"},
		{`uid \d+`, "uid UID"},
		{`(pid|-9|redact|review-gate|dry-run|on-call|notify) \d+`, "$1 PID"},
	} {
		text = regexp.MustCompile(m[0]).ReplaceAllString(text, m[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
