package conform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// testHook is a hook that does one thing wrong, or nothing.
func testHook(flaw string) {
	if flaw == "deaf to SIGTERM" {
		signal.Ignore(syscall.SIGTERM)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<16)
	counted := 0
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			switch flaw {
			case "goes on":
				time.Sleep(time.Minute)
			case "exits badly":
				os.Exit(3)
			}
			return
		}
		if flaw == "one line a read" {
			lines.Reset(os.Stdin) // what came with it is lost
		}
		if flaw == "short lines" && len(line) > 1<<20 {
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		var r struct {
			ID     any
			Method string
			Params map[string]any
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			if flaw == "dies of garbage" {
				os.Exit(1)
			}
			continue
		}
		if r.ID == nil && flaw != "answers notifications" {
			continue
		}
		if r.Method == "hook.hello" {
			switch flaw {
			case "refuses":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"ok":false,"reason":"not today"}}`+"\n", id(r.ID))
			case "greets strangely":
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"stages":["before_lunch"]}}`+"\n", id(r.ID))
			default:
				fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"ok":true,"stages":["before_tool"]}}`+"\n", id(r.ID))
			}
			continue
		}
		answer := `{"action":"continue"}`
		switch r.Method {
		case "hook.before_tool":
		case "hook.no_such_stage":
			if flaw == "dies of unknown methods" {
				os.Exit(1)
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32601,"message":"unknown method"}}`+"\n", id(r.ID))
			continue
		default:
			if flaw != "answers notifications" {
				continue
			}
		}
		if flaw != "answers notifications" && r.Params["tool"] == nil {
			continue
		}
		arguments, _ := r.Params["arguments"].(map[string]any)
		switch flaw {
		case "silent":
			continue
		case "noisy":
			fmt.Println("checking", r.Params["tool"])
		case "illegal verb":
			answer = `{"action":"inject"}`
		case "wrong case":
			answer = `{"action":"Deny"}`
		case "unknown member":
			answer = `{"action":"continue","decision":"allow"}`
		case "rounds":
			raw, _ := json.Marshal(arguments)
			answer = `{"action":"modify","call":{"arguments":` + string(raw) + `}}`
		case "dies of types":
			_ = arguments["command"].(string)
		case "counts":
			if counted++; counted%2 == 0 {
				answer = `{"action":"deny"}`
			}
		case "errs":
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32603,"message":"no database"}}`+"\n", id(r.ID))
			continue
		case "other ids":
			fmt.Printf(`{"jsonrpc":"2.0","id":"%v","result":{}}`+"\n", id(r.ID))
			continue
		case "answers twice":
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{}}`+"\n", id(r.ID))
		case "rounds ids":
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{}}`+"\n", float32(r.ID.(float64)))
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":%s}`+"\n", id(r.ID), answer)
	}
}

func id(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func test(t *testing.T, o HookOptions) []Result {
	t.Helper()
	results, err := Hook(t.Context(), o)
	require.NoError(t, err)
	return results
}

// failed names the checks that did not pass.
func failed(results []Result) (list []string) {
	for _, r := range results {
		if r.Status == Fail || r.Status == Warn {
			list = append(list, string(r.Status)+" "+r.Check)
		}
	}
	return list
}

func TestFlawsOfHooksAreFound(t *testing.T) {
	t.Parallel()
	const odd, types = "FAIL before_tool: unknown params, odd text and numbers", "FAIL before_tool: values of other types"
	for flaw, want := range map[string]struct {
		checks []string
		detail string // of the first
	}{
		"none":                    {nil, ""},
		"silent":                  {[]string{"FAIL before_tool"}, "no answer within"},
		"noisy":                   {[]string{"FAIL stdout"}, "checking bash"},
		"illegal verb":            {[]string{"FAIL before_tool"}, `"inject" is not possible at before_tool`},
		"wrong case":              {[]string{"FAIL before_tool"}, `unknown verb "Deny"`},
		"unknown member":          {[]string{"FAIL before_tool"}, `unknown member "decision"`},
		"errs":                    {[]string{"FAIL before_tool"}, "no database"},
		"other ids":               {[]string{"FAIL before_tool"}, "but 1 with another id"},
		"rounds":                  {[]string{odd}, "9007199254740993 came back as 9007199254740992"},
		"dies of types":           {[]string{types}, "it ended with exit status 2"},
		"answers notifications":   {[]string{"FAIL unknown notification", "FAIL stdout"}, "it answered a notification"},
		"dies of unknown methods": {[]string{"FAIL unknown method"}, "it ended with exit status 1"},
		"dies of garbage":         {[]string{"FAIL garbage on stdin"}, "it ended with exit status 1"},
		"one line a read":         {[]string{"FAIL two calls at once"}, "no answer within"},
		"short lines":             {[]string{"FAIL a request of 4 MiB"}, "no answer within"},
		"counts":                  {[]string{"WARN dry run"}, "answered with"},
		"answers twice":           {[]string{"FAIL stdout"}, "a second answer"},
		"goes on":                 {[]string{"FAIL end of file"}, "it still runs"},
		"exits badly":             {[]string{"FAIL end of file"}, "exit status 3"},
		"deaf to SIGTERM":         {[]string{"FAIL SIGTERM"}, "it still runs"},
		"rounds ids":              {[]string{"FAIL high ids"}, "but 1 with another id"},
		"refuses":                 {[]string{"FAIL greeting"}, "not today"},
		"greets strangely":        {[]string{"FAIL greeting"}, `"before_lunch" was not offered`},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			o := HookOptions{
				Argv:   []string{"env", "GORACE=" + os.Getenv("GORACE"), os.Args[0], "hook", flaw},
				Stages: []protocol.Stage{protocol.StageBeforeTool}, Timeout: 10 * time.Second,
			}
			if strings.Contains(want.detail, "no answer") || strings.Contains(want.detail, "another id") {
				o.Timeout = 2 * time.Second
			}
			results := test(t, o)
			got := failed(results)
			if want.checks == nil {
				require.Empty(t, got, "%+v", results)
				return
			}
			require.Subset(t, got, want.checks, "%+v", results)
			for _, r := range results {
				if string(r.Status)+" "+r.Check == want.checks[0] {
					require.Contains(t, r.Detail, want.detail)
					require.NotEmpty(t, r.Do)
				}
			}
		})
	}
}

func TestAHookThatIsNotThere(t *testing.T) {
	results := test(t, HookOptions{Argv: []string{"/nowhere/hook"}})
	require.Equal(t, []string{"FAIL greeting"}, failed(results))
	require.Equal(t, Skip, results[1].Status)
}

// All example hooks pass, whatever they are offered.
func TestExampleHooks(t *testing.T) {
	t.Parallel()
	guard := build(t, "../examples/hooks/guard")
	for name, argv := range map[string][]string{
		"review_gate.py": {"python3", "../examples/hooks/review_gate.py"},
		"redact.mjs":     {"node", "../examples/hooks/redact.mjs"},
		"guard":          {guard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTool(t, argv[0])
			results := test(t, HookOptions{Argv: argv, Timeout: 10 * time.Second})
			require.Empty(t, failed(results), "%+v", results)
		})
	}
	t.Run("notify.sh", func(t *testing.T) {
		t.Parallel()
		results := test(t, HookOptions{Argv: []string{"sh", "../examples/hooks/notify.sh"}, Events: []string{"tool_*", "decision"}, Timeout: 10 * time.Second})
		require.Empty(t, failed(results), "%+v", results)
	})
}

// requireTool skips where an interpreter is missing, as on a bare machine with Go.
func requireTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed here", name)
	}
}

// build builds a command of this repository.
func build(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, filepath.Base(path))
}
