package pii

import (
	"context"
	"errors"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zaplog "go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/builtin/text/corpus"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

var update = flag.Bool("update", false, "write anew what was measured into the docs")

// TestMeasured prints how well the tables are told apart, and holds the docs to
// it.
func TestMeasured(t *testing.T) {
	f, err := newFinder(jsontext.Value(`{"ip":"redact"}`))
	require.NoError(t, err)
	positive, negative := corpus.Load(t, "testdata/positive.jsonl"), corpus.Load(t, "testdata/negative.jsonl")
	require.GreaterOrEqual(t, len(positive), 120)
	require.GreaterOrEqual(t, len(negative), 120)
	table := corpus.Table(corpus.Measure(t, f, append(positive, negative...)))
	t.Logf("%d texts with personal data, %d without\n%s", len(positive), len(negative), table)
	corpus.InDocs(t, "../../docs/builtins-pii.md", table, *update)
}

const (
	aPhone = "13812345678"
	anID   = "11010119900307002X"
	aCard  = "6222021234567890128"
	anIBAN = "DE89370400440532013000"
)

func scrub(t testing.TB, config, in string) (string, *text.Report) {
	p, err := New(jsontext.Value(config), "", []byte("a key for all the tests"), zap.NewNop())
	require.NoError(t, err)
	var r text.Report
	out, err := p.scrubber.Text(context.Background(), in, &r)
	require.NoError(t, err)
	return out, &r
}

func TestStrategies(t *testing.T) {
	masks := `{"phone":"mask","id_card":"mask","bank_card":"mask","email":"mask","e164":"mask","iban":"mask","ip":"mask"}`
	for _, c := range []struct{ config, in, want string }{
		{`{}`, aPhone, "[手机号]"},
		{``, anID + " " + aCard, "[身份证号] [银行卡号]"},
		{``, "a@example.com " + anIBAN + " +12025550123", "[邮箱] [IBAN] [电话号码]"},
		{``, "10.0.0.7", "10.0.0.7"},
		{`{"ip":"redact"}`, "10.0.0.7 2001:db8::7", "[IP地址] [IP地址]"},
		{`{"phone":"off"}`, aPhone, aPhone},
		{`{"phone":"block"}`, aPhone, "[手机号]"},
		{masks, aPhone, "138****5678"},
		{masks, "+86 138-1234-5678", "+86 138-****-5678"},
		{masks, "0086" + aPhone, "0086138****5678"},
		{masks, "１３８１２３４５６７８", "138****5678"},
		{masks, anID, "110***********002X"},
		{masks, aCard, "6222***********0128"},
		{masks, "4111 1111 1111 1111", "4111 **** **** 1111"},
		{masks, "alice@example.com a%40example.com", "a***@example.com a***%40example.com"},
		{masks, "+1 (202) 555-0123", "+1 (2**) ***-0123"},
		{masks, anIBAN, "DE89**************3000"},
		{masks, "10.0.12.7 2001:db8::7", "10.0.*.* 2001:db8:****"},
		{`{"labels":{"phone":"<tel>"}}`, aPhone + "x", "<tel>x"},
		{`{"allow":["13812345678","/@example\\.com$/"]}`, aPhone + " 138-1234-5678 13912345678 a@example.com a@example.org", aPhone + " 138-1234-5678 [手机号] a@example.com [邮箱]"},
		{`{"allow":["13812345678@qq.com"]}`, "13812345678@qq.com", "13812345678@qq.com"},
		{`{"skip_code":true}`, aPhone + "\n```\n" + aPhone + "\n```\n" + aPhone, "[手机号]\n```\n" + aPhone + "\n```\n[手机号]"},
		{`{"skip_code":true}`, "```\n" + aPhone, "```\n[手机号]"},
		{`{"id_card_15":true}`, "110101900307002", "[身份证号]"},
		{``, "110101900307002", "110101900307002"},
		{`{"bank_card_13_15":true}`, "378282246310005", "[银行卡号]"},
		{``, "378282246310005", "378282246310005"},
		// Where several fit, the longest is meant, then the one that says most.
		{``, aPhone + "@qq.com", "[邮箱]"},
		{`{"email":"off"}`, aPhone + "@qq.com", "[手机号]@qq.com"},
		{``, "+86" + aPhone, "[手机号]"},
		{`{"phone":"off"}`, "+86" + aPhone, "[电话号码]"},
		{``, "电话" + aPhone + "，卡" + aCard + "。", "电话[手机号]，卡[银行卡号]。"},
	} {
		got, _ := scrub(t, c.config, c.in)
		require.Equal(t, c.want, got, "%s %s", c.config, c.in)
		if !strings.Contains(c.config, "skip_code") {
			again, r := scrub(t, c.config, got)
			require.Equal(t, got, again)
			require.True(t, r.Empty() || strings.Contains(c.config, "allow"))
		}
	}
}

// However a value is written, its hash is the same; that of another kind, or
// under another key, is not.
func TestHash(t *testing.T) {
	hash := func(config, in string) string {
		out, _ := scrub(t, config, in)
		require.Regexp(t, `^\[hash:[0-9a-f]{12}\]$`, out)
		return out
	}
	all := `{"phone":"hash","email":"hash","id_card":"hash","iban":"hash"}`
	require.Equal(t, hash(all, aPhone), hash(all, "+86 138-1234-5678"))
	require.Equal(t, hash(all, "A@Example.com"), hash(all, "a@example.com"))
	require.Equal(t, hash(all, anID), hash(all, strings.ToLower(anID)))
	require.Equal(t, hash(all, anIBAN), hash(all, "DE89 3704 0044 0532 0130 00"))
	require.NotEqual(t, hash(all, aPhone), hash(all, "13912345678"))
	require.NotEqual(t, hash(all, aPhone), hash(`{"phone":"hash","hash_key":"another key, long enough"}`, aPhone))
}

func TestHashKeyIsMissed(t *testing.T) {
	for config, want := range map[string]int{
		``: 0, `{"email":"hash"}`: 1, `{"email":"hash","hash_key":"a key that is long enough"}`: 0,
	} {
		core, logs := zaplog.New(zap.InfoLevel)
		_, err := New(jsontext.Value(config), "", nil, zap.New(core))
		require.NoError(t, err)
		require.Equal(t, want, logs.Len(), config)
	}
	_, err := New(jsontext.Value(`{"hash_key_file":"missing"}`), t.TempDir(), nil, zap.NewNop())
	place, ok := errors.AsType[*builtin.ConfigError](err)
	require.True(t, ok)
	require.Equal(t, "/hash_key_file", place.JSONPointer())
}

// TestStages asks through a manager, as hookd does.
func TestStages(t *testing.T) {
	const config = `{"phone":"mask","id_card":"redact","bank_card":"block","email":"hash","ip":"off"}`
	p, err := New(jsontext.Value(config), "", []byte("a key for all the tests"), zap.NewNop())
	require.NoError(t, err)
	m := mounted(t, p)
	for _, c := range []struct {
		name    string
		stage   protocol.Stage
		subject string
		action  protocol.Action
		want    string // of the subject, or of the reason
	}{
		{"nothing to do", protocol.StageUserMessage, `{"message":{"content":"hello 10.0.0.7"}}`, "", ``},
		{"a message", protocol.StageUserMessage, `{"message":{"role":"user","content":"我是` + aPhone + `"}}`, protocol.ActionModify, `{"role":"user","content":"我是138****5678"}`},
		{"a blocked message", protocol.StageUserMessage, `{"message":{"content":[{"type":"text","text":"` + aCard + `"}]}}`, protocol.ActionDeny, "found in the message: bank_card, which may not pass. Take it out and try again."},
		{"a conversation", protocol.StageBeforeLLM, `{"messages":[{"role":"tool","tool_call_id":"` + aPhone + `","content":"{\"tel\":` + aPhone + `,\"id\":\"` + anID + `\"}"}]}`, protocol.ActionModify,
			`{"messages":[{"role":"tool","tool_call_id":"13812345678","content":"{\"tel\":\"138****5678\",\"id\":\"[身份证号]\"}"}]}`},
		{"a blocked conversation", protocol.StageBeforeLLM, `{"messages":[{"role":"user","content":"` + aCard + `"}]}`, protocol.ActionDeny, "found in the conversation: bank_card, which may not pass. Take it out and try again."},
		{"a result", protocol.StageAfterTool, `{"tool":"t","result":{"content":"` + aCard + `"}}`, protocol.ActionModify, `{"content":"[银行卡号]"}`},
		{"a name in a result", protocol.StageAfterTool, `{"tool":"t","result":{"` + aPhone + `":"x"}}`, protocol.ActionModify, `{"138****5678":"x"}`},
		{"an output", protocol.StageOutput, `{"output":{"content":"` + anID + `"}}`, protocol.ActionModify, `{"content":"[身份证号]"}`},
		{"a blocked output", protocol.StageOutput, `{"output":{"content":"` + aCard + `"}}`, protocol.ActionDeny, "found in the output: bank_card, which may not pass. Take it out and try again."},
		{"not its stage", protocol.StageBeforeTool, `{"tool":"t","arguments":{"a":"` + aCard + `"}}`, "", ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := m.Call(t.Context(), &manager.Caller{}, request(t, c.stage, c.subject))
			require.NoError(t, err)
			require.Equal(t, c.action, res.Action)
			if c.action == protocol.ActionDeny {
				require.Equal(t, c.want, res.Reason)
			} else {
				require.Equal(t, c.want, string(res.Subject))
			}
			wire := string(res.AppendJSON(nil, protocol.NewStageTable().Stage(c.stage), true))
			for _, value := range []string{aCard, anID} {
				require.NotContains(t, wire, value)
			}
		})
	}
	res, err := m.Call(t.Context(), &manager.Caller{}, request(t, protocol.StageAfterTool, `{"tool":"t","result":{"content":"`+aCard+`"}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"pii: found in the tool's result: bank_card, which is blocked; there is no deny at after_tool, so it was replaced"}, res.Warnings)
}

func mounted(t *testing.T, value any) *manager.HookManager {
	roles, err := hook.RolesOf(value)
	require.NoError(t, err)
	m := manager.New(manager.Options{Log: zap.NewNop()})
	t.Cleanup(func() { require.NoError(t, m.Close(context.Background())) })
	reg := &hook.Registration{
		Name: "pii", Source: hook.InProcess, Roles: roles, Stages: roles.Stages, FailPolicy: hook.FailDeny,
		Timeout: time.Minute, ApprovalTimeout: time.Minute, ObserverTimeout: time.Minute,
	}
	g, err := manager.NewGeneration(1, manager.Rules{ChainTimeout: time.Minute}, []*hook.Registration{reg})
	require.NoError(t, err)
	m.Swap(g)
	return m
}

func request(t testing.TB, stage protocol.Stage, subject string) *protocol.Request {
	params, err := protocol.DecodeObject([]byte(subject), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), params)
	require.Nil(t, bad)
	return req
}

// One hook serves all agents at once.
func TestConcurrently(t *testing.T) {
	p, err := New(nil, "", nil, zap.NewNop())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				d, err := p.Intercept(t.Context(), request(t, protocol.StageOutput, `{"output":{"content":"`+aPhone+` a@example.com"}}`))
				if err != nil || string(d.Subject) != `{"content":"[手机号] [邮箱]"}` {
					t.Errorf("%s, %v", d.Subject, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestMasker(t *testing.T) {
	mask, err := Masker(jsontext.Value(`{"phone":"mask"}`), nil, "", []byte("a key for all the tests"))
	require.NoError(t, err)
	key := "AKIA" + "QYLPMN5HHHFPZAM2"
	for in, want := range map[string]string{
		``:             ``,
		`plain ` + key: `plain [密钥:aws-access-token]`,
		`{"arguments":{"command":"curl -H '` + key + `' 13812345678"},"n":1.00}`: `{"arguments":{"command":"curl -H '[密钥:aws-access-token]' 138****5678"},"n":1.00}`,
		`[13812345678]`:                 `["138****5678"]`,
		"{\"a\":\"a@example.com\"}\n{}": "{\"a\":\"[邮箱]\"}\n{}",
		`{"a":"` + aCard:                `{"a":"[银行卡号]`,
		"\xff " + aPhone:                "\xff 138****5678",
	} {
		require.Equal(t, want, string(mask([]byte(in))))
		require.Equal(t, want, string(mask([]byte(want))), "masking twice")
	}
	for _, bad := range [][2]string{{`{"phone":"x"}`, ``}, {``, `{"strategy":"x"}`}} {
		_, err := Masker(jsontext.Value(bad[0]), jsontext.Value(bad[1]), "", nil)
		_, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, "%v", err)
	}
}

// A table with very many numbers takes its time, and no more.
func TestManyMatches(t *testing.T) {
	const many = 20000
	in := strings.Repeat(aPhone+",a@example.com\n```\n"+aPhone+"\n```\n", many)
	out, r := scrub(t, `{"skip_code":true}`, in)
	require.Equal(t, many, r.Count("phone"))
	require.Equal(t, many, r.Count("email"))
	require.Equal(t, strings.Repeat("[手机号],[邮箱]\n```\n"+aPhone+"\n```\n", many), out)
}
