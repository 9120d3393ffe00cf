package manager

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	zaplog "go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write the traces that come out into testdata/traces")

// TestTraces plays every scenario in testdata/traces and compares all that
// came of it with what stands there. README.md beside them explains the
// language.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/traces/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			arc, err := readArchive(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = newScene(t, arc).play() })
			if *update {
				require.NoError(t, arc.write(file, got))
				return
			}
			want, _ := arc.section("trace")
			require.Equal(t, want, got, "if this is what should happen: go test ./manager -run TestTraces -update")
		})
	}
}

// archive is a file of sections, each after a line "-- NAME --"; what stands
// before the first is the scenario in words.
type archive struct {
	words    string
	names    []string
	sections map[string]string
}

func readArchive(file string) (*archive, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	a := &archive{sections: map[string]string{}}
	for l := range strings.Lines(string(b)) {
		name, marked := strings.CutPrefix(strings.TrimSpace(l), "-- ")
		if name, ok := strings.CutSuffix(name, " --"); marked && ok {
			a.names = append(a.names, name)
			a.sections[name] = ""
		} else if len(a.names) == 0 {
			a.words += l
		} else {
			a.sections[a.names[len(a.names)-1]] += l
		}
	}
	return a, nil
}

func (a *archive) section(name string) (string, bool) {
	text, ok := a.sections[name]
	return text, ok
}

func (a *archive) write(file, trace string) error {
	text := a.words
	for _, name := range a.names {
		if name != "trace" {
			text += "-- " + name + " --\n" + a.sections[name]
		}
	}
	return os.WriteFile(file, []byte(text+"-- trace --\n"+trace), 0o644)
}

// scene plays one scenario in a bubble of its own time.
type scene struct {
	t       *testing.T
	arc     *archive
	m       *HookManager
	logs    *zaplog.ObservedLogs
	agents  map[string]*Caller
	agent   string
	hooks   []*scripted // of the current generation
	rules   Rules
	started time.Time // of the call or step under way
	broken  error     // what the recorder says
	last    *Record

	mu    sync.Mutex
	trace strings.Builder
	later map[string][]string // lines of hooks that run beside the call
}

func newScene(t *testing.T, arc *archive) *scene {
	core, logs := zaplog.New(zapcore.DebugLevel)
	s := &scene{t: t, arc: arc, logs: logs, agents: map[string]*Caller{}, later: map[string][]string{}, started: time.Now()}
	s.m = New(Options{Log: zap.New(core), Recorder: s})
	t.Cleanup(func() {
		require.NoError(t, s.m.Close(context.Background()))
		time.Sleep(time.Hour) // hooks that ignore their context come back
	})
	s.mount("hooks")
	s.agent = "bot"
	s.agents["bot"] = &Caller{Name: "bot", PID: -1, UID: -1}
	return s
}

// mount makes a section of hooks the current generation. A hook that an
// earlier section has named stays the same running hook.
func (s *scene) mount(name string) {
	text, ok := s.arc.section(name)
	require.True(s.t, ok, "no section %q", name)
	rules, hooks, err := parseHooks(text)
	require.NoError(s.t, err)
	var regs []*hook.Registration
	for _, f := range hooks {
		f.tell = s.tell
		if i := slices.IndexFunc(s.hooks, func(o *scripted) bool { return o.reg.Name == f.reg.Name }); i >= 0 {
			f.reg.Roles.Value = s.hooks[i].reg.Roles.Value
		}
		regs = append(regs, f.reg)
	}
	g, err := NewGeneration(s.m.Generation().Number+1, rules, regs)
	require.NoError(s.t, err)
	s.m.Swap(g)
	s.hooks, s.rules = hooks, rules
}

func (s *scene) play() string {
	run, ok := s.arc.section("run")
	require.True(s.t, ok, "no section run")
	for step := range strings.Lines(run) {
		if step = strings.TrimSpace(step); step != "" {
			s.started = time.Now()
			s.step(step)
			s.settle()
		}
	}
	return s.trace.String()
}

// settle waits until nothing moves and writes down what happened beside.
func (s *scene) settle() {
	synctest.Wait()
	// Workers log beside one another, so the order is made up.
	var logged []string
	for _, e := range s.logs.TakeAll() {
		fields := e.ContextMap()
		delete(fields, "stack")
		text := fmt.Sprintf("log %s: %s", e.Level, e.Message)
		for _, k := range slices.Sorted(maps.Keys(fields)) {
			text += fmt.Sprintf(" %s=%q", k, fields[k])
		}
		logged = append(logged, text)
	}
	slices.Sort(logged)
	for _, l := range logged {
		s.write("  %s", l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.later)) {
		for _, l := range s.later[name] {
			s.trace.WriteString(l)
		}
		delete(s.later, name)
	}
}

var digest = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)

func (s *scene) write(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace.WriteString(s.format(format, args...))
}

func (s *scene) format(format string, args ...any) string {
	return digest.ReplaceAllString(fmt.Sprintf(format, args...), "$1…") + "\n"
}

// tell writes what a hook saw and said.
func (s *scene) tell(f *scripted, beside bool, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.format("  "+format, args...)
	if d := time.Since(s.started); d > 0 {
		line = s.format("  "+format+" (at %s)", append(args, d)...)
	}
	if beside {
		s.later[f.reg.Name] = append(s.later[f.reg.Name], line)
		return
	}
	s.trace.WriteString(line)
}

// Record implements [Recorder].
func (s *scene) Record(_ context.Context, rec *Record) error {
	kept := *rec
	s.last = &kept
	action, reason := (&run{stage: rec.Request.Stage, result: *rec.Result}).verdict()
	s.write("  recorded %s%s: %s%s", action, colon(reason), rec.Final.AppendJSON(nil), errText(rec.Err))
	return s.broken
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " error " + err.Error()
}

func (s *scene) caller() *Caller { return s.agents[s.agent] }

func (s *scene) step(text string) {
	verb, rest, _ := strings.Cut(text, " ")
	if stage := s.m.stages.Stage(protocol.Stage(verb)); stage != nil {
		s.call(stage, rest)
		return
	}
	s.write("%s", text)
	switch verb {
	case "agent":
		s.greet(rest)
	case "stranger": // an agent that never says hello
		s.agent = "stranger"
		if s.agents[s.agent] == nil {
			s.agents[s.agent] = &Caller{PID: -1, UID: -1}
		}
	case "wait":
		d, err := time.ParseDuration(rest)
		require.NoError(s.t, err)
		time.Sleep(d)
	case "event":
		obj, err := protocol.DecodeObject([]byte(rest), 0)
		require.NoError(s.t, err)
		ev, bad := protocol.DecodeEvent(obj)
		require.Nil(s.t, bad)
		s.m.Publish(s.caller(), ev)
	case "own_event": // of hookd itself
		kind, payload, _ := strings.Cut(rest, " ")
		s.m.Publish(nil, protocol.NewHookdEvent(protocol.EventKind(kind), nil, []byte(payload)))
	case "reload":
		s.mount(rest)
	case "record_fails":
		s.broken = errors.New(rest)
	case "record_works":
		s.broken = nil
	case "shutdown":
		s.m.DenyApprovals(ErrShuttingDown)
	case "close":
		require.NoError(s.t, s.m.Close(context.Background()))
	case "stats":
		st := s.m.Stats()[rest]
		outcomes := ""
		for _, o := range slices.Sorted(maps.Keys(st.Outcomes)) {
			outcomes += fmt.Sprintf(" %s=%d", o, st.Outcomes[o])
		}
		s.write("  calls %d, failures %d, events %d, missed %d,%s, last error %q", st.Calls, st.Failures, st.Events, st.Missed, outcomes, st.LastError)
	default:
		s.t.Fatalf("unknown step %q", text)
	}
}

// greet switches to an agent, which says hello when it is new: `agent NAME
// deadline_ms=N approval_deadline_ms=N session=ID events`.
func (s *scene) greet(text string) {
	words := strings.Fields(text)
	s.agent = words[0]
	if s.agents[s.agent] != nil {
		return
	}
	c := &Caller{PID: -1, UID: -1}
	hello := &protocol.AgentHello{Name: s.agent}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "deadline_ms":
			hello.DeadlineMS = n
		case "approval_deadline_ms":
			hello.ApprovalDeadlineMS = n
		case "session":
			hello.SessionID = value
		case "events":
			hello.Events = true
		default:
			s.t.Fatalf("unknown word %q", w)
		}
	}
	if bad := c.Greet(hello); bad != nil {
		s.write("  refused: %v %s", bad, bad.Data)
	}
	s.agents[s.agent] = c
}

// call plays `STAGE [gone=D] [shutdown=D] {params}`: after D the agent goes
// away, or hookd begins to shut down.
func (s *scene) call(stage *protocol.StageInfo, rest string) {
	s.write("%s asks %s %s", s.agent, stage.Name, rest)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	for !strings.HasPrefix(rest, "{") {
		word, more, _ := strings.Cut(rest, " ")
		key, value, _ := strings.Cut(word, "=")
		d, err := time.ParseDuration(value)
		require.NoError(s.t, err)
		switch key {
		case "gone":
			defer time.AfterFunc(d, func() { cancel(ErrAgentGone) }).Stop()
		case "shutdown":
			defer time.AfterFunc(d, func() { s.m.DenyApprovals(ErrShuttingDown) }).Stop()
		default:
			s.t.Fatalf("unknown word %q", word)
		}
		rest = more
	}
	obj, err := protocol.DecodeObject([]byte(rest), 0)
	require.NoError(s.t, err)
	req, bad := protocol.DecodeRequest(stage, obj)
	if bad != nil {
		s.write("  refused: %v %s", bad, bad.Data)
		return
	}
	asked := map[string]int{}
	for _, f := range s.hooks {
		asked[f.reg.Name] = len(f.asked())
	}
	s.last = nil
	res, err := s.m.Call(ctx, s.caller(), req)
	synctest.Wait()
	took := time.Since(s.started)
	if res != nil {
		for _, st := range res.Trail {
			s.write("  step %s", stepText(&st))
		}
	}
	if err != nil {
		s.write("  no answer after %s: %v", took, err)
	} else {
		s.write("  answer after %s: %s", took, res.AppendJSON(nil, stage, req.Trail))
	}
	if s.last == nil {
		return // refused before anything ran
	}
	c := &checked{rules: s.rules, caller: s.caller(), req: req, res: res, err: err, final: s.last.Final, unrecorded: s.broken != nil}
	for _, f := range s.hooks {
		c.hooks = append(c.hooks, checkedHook{f.reg, f.asked()[asked[f.reg.Name]:]})
	}
	c.check(s.t)
}

func stepText(st *protocol.Step) string {
	text := fmt.Sprintf("%s %s", st.Hook, st.Outcome)
	if st.Action != "" && protocol.Outcome(st.Action) != st.Outcome {
		text += fmt.Sprintf(" (said %s)", st.Action)
	}
	if st.Recheck {
		text += " recheck"
	}
	if len(st.Changed) > 0 {
		text += " changed " + strings.Join(st.Changed, ", ")
	}
	if st.Duration > 0 {
		text += fmt.Sprintf(" in %s", st.Duration)
	}
	return text + colon(st.Detail)
}
