package secrets

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zaplog "go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/builtin/text/corpus"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write anew what was measured into the docs")

// TestMeasured prints how well the tables are told apart, and holds the docs to
// it.
func TestMeasured(t *testing.T) {
	positive, negative := corpus.Load(t, "testdata/positive.jsonl"), corpus.Load(t, "testdata/negative.jsonl")
	scores := corpus.Measure(t, testFinder(t, ``), append(positive, negative...))
	var own ruleFile
	require.NoError(t, protocol.Unmarshal([]byte(hookdRules), &own))
	groups := []corpus.Score{{Kind: "rules of gitleaks"}, {Kind: "rules of hookd"}, scores[len(scores)-1]}
	for _, s := range scores[:len(scores)-1] {
		g := &groups[0]
		if slices.ContainsFunc(own.Rules, func(r fileRule) bool { return r.ID == s.Kind }) {
			g = &groups[1]
		}
		g.Hits, g.Missed, g.Wrong = g.Hits+s.Hits, g.Missed+s.Missed, g.Wrong+s.Wrong
	}
	table := corpus.Table(groups)
	t.Logf("%d texts with secrets, %d without\n%s", len(positive), len(negative), table)
	corpus.InDocs(t, "../../docs/builtins-secrets.md", table, *update)
}

func testFinder(t testing.TB, config string) *finder {
	set, err := readSetup(jsontext.Value(config))
	require.NoError(t, err)
	return newFinder(set, newCanaries(set.Canaries))
}

func newSecrets(t testing.TB, config string) *Secrets {
	s, err := New(jsontext.Value(config), "", []byte("a key for all the tests"), zap.NewNop())
	require.NoError(t, err)
	return s
}

// Values that look real stand in two pieces, for those who search repositories.
var (
	awsKey = "AKIA" + "QYLPMN5HHHFPZAM2"
	github = "ghp_" + "BDlcy5cPcVipQTga0B6aUQiYbfuXSIFFS5gL"
)

const canary = "Canary-7f3b-in-the-mine"

func TestStrategies(t *testing.T) {
	for _, c := range []struct{ config, in, want string }{
		{``, "id " + awsKey, "id [密钥:aws-access-token]"},
		{`{"label":"[key]"}`, "id " + awsKey, "id [key]"},
		{`{"strategy":"mask"}`, "id " + awsKey + " password='q7#Lm2$vZ9'", "id AKIA**** password='****'"},
		{`{"strategy":"off"}`, "id " + awsKey, "id " + awsKey},
		{`{"strategy":"off","rules":{"aws-access-token":"redact"}}`, awsKey + " " + github, "[密钥:aws-access-token] " + github},
		{`{"rules":{"aws-*":"off","aws-acc*":"mask"}}`, awsKey + " " + github, "AKIA**** [密钥:github-pat]"},
		{`{"rules":{"aws-*":"mask","aws-access-token":"off"}}`, awsKey, awsKey},
		{`{"rules":{"*":"off","?ithub-pat":"redact"}}`, awsKey + " " + github, awsKey + " [密钥:github-pat]"},
		{`{"allow":["` + awsKey + `","/^ghp_BD/"]}`, awsKey + " " + github, awsKey + " " + github},
		{`{"custom":[{"id":"corp","regex":"corp-([0-9]{6})","keywords":["CORP-"]}]}`, "corp-123456", "corp-[密钥:corp]"},
		{`{"custom":[{"id":"corp","regex":"[A-Z]{3}[0-9]{6}"}]}`, "xABC123456", "x[密钥:corp]"},
		{`{"canaries":["` + canary + `"]}`, "a " + canary + " b", "a [canary] b"},
	} {
		s := newSecrets(t, c.config)
		got, err := s.scrubber.Text(t.Context(), c.in, &text.Report{})
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.config)
	}
	out, err := newSecrets(t, `{"strategy":"hash"}`).scrubber.Text(t.Context(), awsKey, &text.Report{})
	require.NoError(t, err)
	require.Regexp(t, `^\[hash:[0-9a-f]{12}\]$`, out)
}

// The name of a member says what its value is.
func TestMembers(t *testing.T) {
	s := newSecrets(t, ``)
	for in, want := range map[string]string{
		`{"api_key":"zq8kd03lwm29vx71tn45"}`:                         `{"api_key":"[密钥:generic-api-key]"}`,
		`{"note":"zq8kd03lwm29vx71tn45"}`:                            `{"note":"zq8kd03lwm29vx71tn45"}`,
		`{"password":"q7#Lm2$vZ9"}`:                                  `{"password":"[密钥:password-assignment]"}`,
		`{"body":"{\"api_key\":\"zq8kd03lwm29vx71tn45\"}"}`:          `{"body":"{\"api_key\":\"[密钥:generic-api-key]\"}"}`,
		`{"` + awsKey + `":1}`:                                       `{"[密钥:aws-access-token]":1}`,
		`{"headers":{"Authorization":"Bearer q8Kd03LwM29vX71tN45"}}`: `{"headers":{"Authorization":"Bearer [密钥:authorization-header]"}}`,
	} {
		out, err := s.scrubber.Value(t.Context(), jsontext.Value(in), nil, &text.Report{})
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

// A keyword may reach from a member's name into its value.
func TestKeywordsAcrossNameAndValue(t *testing.T) {
	s := newSecrets(t, `{"custom":[{"id":"pin","regex":"pin\":\"([0-9x]+)\"","keywords":["pin\":\"x"]}]}`)
	r := &text.Report{}
	out, err := s.scrubber.Value(t.Context(), jsontext.Value(`{"pin":"x1234","pi":"n"}`), nil, r)
	require.NoError(t, err)
	require.NotContains(t, string(out), "x1234")
	require.Contains(t, string(out), `"pi":"n"`)
	require.True(t, s.scrubber.Finder.(*finder).reaching)
	require.False(t, testFinder(t, ``).reaching, "none that ships does, so that names and values can be looked at one by one")
}

func request(t testing.TB, stage protocol.Stage, subject string) *protocol.Request {
	params, err := protocol.DecodeObject([]byte(subject), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), params)
	require.Nil(t, bad)
	return req
}

func decide(t testing.TB, s *Secrets, stage protocol.Stage, subject string) string {
	req := request(t, stage, subject)
	d, err := s.Intercept(t.Context(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(req.Stage))
	return string(d.AppendJSON(nil, req.Stage))
}

func TestStages(t *testing.T) {
	call := `{"tool":"bash","arguments":{"command":"echo ` + awsKey + `"}}`
	for _, c := range []struct {
		config  string
		stage   protocol.Stage
		subject string
		want    string
	}{
		{``, protocol.StageUserMessage, `{"message":{"content":"` + awsKey + `"}}`, `{"action":"modify","reason":"replaced: aws-access-token","message":{"content":"[密钥:aws-access-token]"}}`},
		{`{"rules":{"aws-*":"block"}}`, protocol.StageUserMessage, `{"message":{"content":"` + awsKey + `"}}`, `{"action":"deny","reason":"found in the message: aws-access-token, which may not pass. Take it out and try again."}`},
		{``, protocol.StageBeforeLLM, `{"messages":[{"role":"user","content":"` + awsKey + `"}],"options":{"api_key":"` + awsKey + `"}}`, `{"action":"modify","reason":"replaced: aws-access-token","request":{"messages":[{"role":"user","content":"[密钥:aws-access-token]"}]}}`},
		{``, protocol.StageAfterTool, `{"tool":"t","result":{"content":"` + awsKey + `"}}`, `{"action":"modify","reason":"replaced: aws-access-token","result":{"content":"[密钥:aws-access-token]"}}`},
		{``, protocol.StageOutput, `{"output":{"content":"` + awsKey + `"}}`, `{"action":"modify","reason":"replaced: aws-access-token","output":{"content":"[密钥:aws-access-token]"}}`},
		{``, protocol.StageBeforeTool, `{"tool":"bash","arguments":{"command":"ls"}}`, `{"action":"continue"}`},
		{``, protocol.StageBeforeTool, call, `{"action":"deny_tool","reason":"found in the tool's arguments: aws-access-token, which may not pass. Take it out and try again."}`},
		{`{"before_tool":"ask"}`, protocol.StageBeforeTool, call, `{"action":"ask","reason":"found in the tool's arguments: aws-access-token"}`},
		{`{"before_tool":"ask","rules":{"aws-*":"block"}}`, protocol.StageBeforeTool, call, `{"action":"deny_tool","reason":"found in the tool's arguments: aws-access-token, which may not pass. Take it out and try again."}`},
		{`{"before_tool":"mask"}`, protocol.StageBeforeTool, call, `{"action":"modify","reason":"replaced: aws-access-token","call":{"arguments":{"command":"echo AKIA****"}}}`},
		{`{"before_tool":"off"}`, protocol.StageBeforeTool, call, `{"action":"continue"}`},
		{`{"before_tool":"off","rules":{"aws-*":"block"}}`, protocol.StageBeforeTool, call, `{"action":"deny_tool","reason":"found in the tool's arguments: aws-access-token, which may not pass. Take it out and try again."}`},
		{`{"rules":{"aws-*":"off"}}`, protocol.StageBeforeTool, call, `{"action":"continue"}`},
	} {
		require.Equal(t, c.want, decide(t, newSecrets(t, c.config), c.stage, c.subject), c.config)
	}
}

func TestCanaries(t *testing.T) {
	s := newSecrets(t, `{"strategy":"off","before_tool":"off","canaries":["`+canary+`"]}`)
	roles, err := hook.RolesOf(s)
	require.NoError(t, err)
	require.Contains(t, roles.Stages, protocol.StageAfterLLM)
	require.False(t, roles.Quick)
	require.NotContains(t, newSecrets(t, ``).Stages(), protocol.StageAfterLLM)

	spellings := []string{canary, strings.ToUpper(canary), "x" + canary + "y", canary[:4] + "\u200b" + canary[4:], hex.EncodeToString([]byte(canary))}
	for lead := range 3 {
		spellings = append(spellings,
			base64.StdEncoding.EncodeToString([]byte("abc"[:lead]+canary+"!")), base64.RawURLEncoding.EncodeToString([]byte("ÿþ~"[:lead]+canary)))
	}
	for _, spelling := range spellings {
		quoted := string(protocol.Quote("so " + spelling + " it is"))
		for stage, subject := range map[protocol.Stage]string{
			protocol.StageUserMessage: `{"message":{"content":` + quoted + `}}`,
			protocol.StageBeforeTool:  `{"tool":"t","arguments":{"a":[{"b":` + quoted + `}]}}`,
			protocol.StageOutput:      `{"output":{"content":[{"type":"text","text":` + quoted + `}]}}`,
			protocol.StageBeforeLLM:   `{"messages":[],"options":{"x":` + quoted + `}}`,
		} {
			d := decide(t, s, stage, subject)
			require.Contains(t, d, `"action":"deny`, "%s %s", stage, spelling)
			require.Contains(t, d, "a canary, a string that must never come out")
			require.NotContains(t, d, spelling)
		}
		for stage, subject := range map[protocol.Stage]string{
			protocol.StageAfterTool: `{"tool":"t","result":{"content":` + quoted + `}}`,
			protocol.StageAfterLLM:  `{"response":{"content":` + quoted + `}}`,
		} {
			d := decide(t, s, stage, subject)
			require.Contains(t, d, "[canary]", "%s %s", stage, spelling)
			require.Contains(t, d, `"warnings":["`)
			require.NotContains(t, d, spelling)
		}
	}
	// In names, in IDs and in JSON within strings.
	for _, subject := range []string{
		`{"messages":[{"role":"tool","tool_call_id":"` + canary + `","content":"x"}]}`,
		`{"messages":[{"role":"user","content":"{\"` + canary + `\":1}"}]}`,
		`{"messages":[],"tools":[{"name":"` + canary + `"}]}`,
	} {
		require.Contains(t, decide(t, s, protocol.StageBeforeLLM, subject), `"action":"deny"`, subject)
	}
	require.Equal(t, `{"action":"continue"}`, decide(t, s, protocol.StageOutput, `{"output":{"content":"`+canary[:20]+`"}}`))
	// After the model has answered, only canaries matter.
	require.Equal(t, `{"action":"continue"}`, decide(t, newSecrets(t, `{"canaries":["`+canary+`"]}`), protocol.StageAfterLLM, `{"response":{"content":"`+awsKey+`"}}`))
}

func TestCanariesFromElsewhere(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "canaries"), []byte("# mine\n\n file-canary-1 \nfile-canary-2"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bad"), []byte("file-canary-1\nshort\n"), 0o600))
	t.Setenv("HOOKD_TEST_CANARY", "environment-canary")
	s, err := New(jsontext.Value(`{"canaries_env":["HOOKD_TEST_CANARY"],"canaries_file":"canaries"}`), folder, nil, zap.NewNop())
	require.NoError(t, err)
	for _, value := range []string{"environment-canary", "file-canary-1", "file-canary-2"} {
		require.Contains(t, decide(t, s, protocol.StageOutput, `{"output":{"content":"`+value+`"}}`), `"action":"deny"`)
	}
	for config, want := range map[string]string{
		`{"canaries_env":["HOOKD_TEST_UNSET"]}`: "/canaries_env/0: the environment variable HOOKD_TEST_UNSET of hookd must hold a canary",
		`{"canaries_file":"missing"}`:           "/canaries_file: ",
		`{"canaries_file":"bad"}`:               "/canaries_file: line 2: a canary of fewer than 8 bytes",
		`{"hash_key_file":"missing"}`:           "/hash_key_file: ",
	} {
		_, err := New(jsontext.Value(config), folder, nil, zap.NewNop())
		_, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, config)
		require.ErrorContains(t, err, want)
	}
}

func TestHashKeyIsMissed(t *testing.T) {
	core, logs := zaplog.New(zap.InfoLevel)
	_, err := New(jsontext.Value(`{"strategy":"hash"}`), "", nil, zap.New(core))
	require.NoError(t, err)
	require.Equal(t, 1, logs.Len())
}

// A search that is no longer wanted ends between two rules.
func TestStops(t *testing.T) {
	reason := errors.New("the agent has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err := newSecrets(t, ``).Intercept(ctx, request(t, protocol.StageOutput, `{"output":{"content":"`+awsKey+`"}}`))
	require.ErrorIs(t, err, reason)
}
