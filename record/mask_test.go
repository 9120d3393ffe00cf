package record

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestMaskSecretsByName(t *testing.T) {
	for in, want := range map[string]string{
		`{"password":"hunter2"}`:                        `{"password":"[masked]"}`,
		`{ "API_KEY" : "abc", "x":1.50 }`:               `{ "API_KEY" : "[masked]", "x":1.50 }`,
		`{"apiKey":"a\"b","n":[1, 2]}`:                  `{"apiKey":"[masked]","n":[1, 2]}`,
		`{"client-secret":"x","db.password":"y"}`:       `{"client-secret":"[masked]","db.password":"[masked]"}`,
		`{"Authorization":"Bearer abc"}`:                `{"Authorization":"[masked]"}`,
		`{"pin":1234,"token":null,"secret":true}`:       `{"pin":"[masked]","token":null,"secret":true}`,
		`{"cookies":["a=b","c=d"],"next":"e"}`:          `{"cookies":["[masked]","[masked]"],"next":"e"}`,
		`{"tokens":[["a",{"b":"c"}],7],"x":["y"]}`:      `{"tokens":[["a",{"b":"c"}],7],"x":["y"]}`,
		`{"credentials":[["a",{"b":"c"}],7],"x":["y"]}`: `{"credentials":[["[masked]",{"b":"[masked]"}],"[masked]"],"x":["y"]}`,
		`{"credentials":{"user":"ann","password":"x"}}`: `{"credentials":{"user":"ann","password":"[masked]"}}`,
		`{"max_tokens":100,"prompt_tokens":5}`:          `{"max_tokens":100,"prompt_tokens":5}`,
		`{"session_id":"s","cwd":"/x","key":"k"}`:       `{"session_id":"s","cwd":"/x","key":"k"}`,
		`{"to\u006ben":"abc"}`:                          `{"to\u006ben":"[masked]"}`,
		`"plain"`:                                       `"plain"`,
		`[]`:                                            `[]`,
		`{"password":""}`:                               `{"password":""}`,
	} {
		require.Equal(t, want, string(MaskSecrets(raw(in))))
	}
}

func TestMaskSecretsInTexts(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	for in, want := range map[string]string{
		"key AKIAIOSFODNN7EXAMPLE here":                                            "key [masked] here",
		"ghp_" + hex[:36] + ", and":                                                "[masked], and",
		"github_pat_" + hex[:30]:                                                   "[masked]",
		"OPENAI=sk-proj-" + hex[:40]:                                               "OPENAI=[masked]",
		"xoxb-1234567890-abcdef":                                                   "[masked]",
		"AIza" + hex[:35]:                                                          "[masked]",
		"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_def done":               "jwt [masked] done",
		"curl -H 'Authorization: Bearer abc.def' x":                                "curl -H 'Authorization: Bearer [masked]' x",
		"curl -H \"authorization: token 123\"":                                     "curl -H \"authorization: token [masked]\"",
		"Bearer 0123456789abcdef0123":                                              "Bearer [masked]",
		"curl -u ann https://ann:s3cret@example.com/x?a=b":                         "curl -u ann https://ann:[masked]@example.com/x?a=b",
		"export AWS_SECRET_ACCESS_KEY=abc/def+ghi; ls":                             "export AWS_SECRET_ACCESS_KEY=[masked]; ls",
		"mysql --password hunter2 --host db":                                       "mysql --password [masked] --host db",
		"mysql --password=hunter2 db":                                              "mysql --password=[masked] db",
		`{"token": "abc", "x": "y"}`:                                               `{"token": "[masked]", "x": "y"}`,
		"password: hunter2\nuser: ann":                                             "password: [masked]\nuser: ann",
		"DB_PASSWORD='two words' ./run":                                            "DB_PASSWORD='[masked]' ./run",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- rest": "-----BEGIN RSA PRIVATE KEY-----[masked]-----END RSA PRIVATE KEY----- rest",
		"-----BEGIN PRIVATE KEY-----\nabc":                                         "-----BEGIN PRIVATE KEY-----[masked]",
		"two AKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLE":                            "two [masked] [masked]",
		// What only looks like one is left.
		"ls -la":                              "ls -la",
		"risk-management and ask-me":          "risk-management and ask-me",
		"PWD=/home/ann OLDPWD=/tmp":           "PWD=/home/ann OLDPWD=/tmp",
		"token=$TOKEN ./run":                  "token=$TOKEN ./run",
		"token := getToken(ctx)":              "token := getToken(ctx)",
		"if password == nil {":                "if password == nil {",
		"max_tokens: 100":                     "max_tokens: 100",
		"https://example.com:8080/a@b":        "https://example.com:8080/a@b",
		"bearer of bad news":                  "bearer of bad news",
		"basic understanding":                 "basic understanding",
		"-----BEGIN CERTIFICATE-----\nabc":    "-----BEGIN CERTIFICATE-----\nabc",
		"sha256:" + hex:                       "sha256:" + hex,
		"monkey=banana":                       "monkey=banana",
		"commit " + hex[:40]:                  "commit " + hex[:40],
		"12:30:45 done":                       "12:30:45 done",
		"eyJ short":                           "eyJ short",
		"密码 password=秘密":                      "密码 password=[masked]",
		"--token-file /run/x --no-password y": "--token-file /run/x --no-password [masked]",
	} {
		got, changed := maskText(in)
		require.Equal(t, want, got)
		require.Equal(t, want != in, changed)
		again, changed := maskText(got)
		require.False(t, changed, "masking once is enough: %s", again)
		require.Equal(t, string(protocol.Quote(want)), string(MaskSecrets(protocol.Quote(in))))
	}
}

// What there is nothing to take out of is returned as it is, without a copy.
func TestMaskSecretsCopiesNothing(t *testing.T) {
	v := raw(`{"tool":"bash","arguments":{"command":"go test ./..."}}`)
	require.Same(t, &v[0], &MaskSecrets(v)[0])
}

func FuzzMaskSecrets(f *testing.F) {
	for _, seed := range []string{
		`{"password":"x","a":["--token abc","\u00e9\\",-1.5e3]}`, `["Bearer 0123456789abcdef", "https://a:b@c", "-----BEGIN PRIVATE KEY-----"]`,
		`{"cookie":[{"a":[1]}],"\"":":"}`, `"token= 'x"`, `{"a":"password=\"b c\" \n"}`,
	} {
		f.Add(seed, 40)
	}
	f.Fuzz(func(t *testing.T, in string, limit int) {
		v := raw(in)
		if protocol.CheckValue(v, 0) != nil {
			return
		}
		out := MaskSecrets(v)
		require.NoError(t, protocol.CheckValue(out, 0))
		require.Equal(t, string(out), string(MaskSecrets(out)), "once is enough")
		if v.Kind() != '{' || limit < 64 || limit > 1<<20 {
			return
		}
		short, cut := shrink(out, limit)
		require.NoError(t, protocol.CheckValue(short, 0))
		require.Equal(t, cut, len(out) > limit)
		require.LessOrEqual(t, len(short), max(2*limit, 64))
	})
}

func TestShrink(t *testing.T) {
	long := func(n int) string { return strings.Repeat("word ", n/5) }
	for name, c := range map[string]struct {
		in       string
		contains []string
	}{
		"long texts are cut to the same length": {`{"a":"` + long(3000) + `","b":"` + long(9000) + `","c":"short"}`, []string{`"c":"short"`, "bytes are not recorded"}},
		"many members":                          {`{"tool":"x","list":[` + strings.Repeat(`12345,`, 2000) + `0]}`, []string{`"tool":"x"`, `"list":"[12003 bytes are not recorded]"`}},
		"many short texts":                      {`{"tool":"x","list":[` + strings.Repeat(`"abc",`, 2000) + `0]}`, []string{`"tool":"x"`}},
		"too many members":                      {`{"a":1` + manyMembers(3000) + `}`, []string{`{"not_recorded_bytes":`}},
		"escapes":                               {`{"a":"` + strings.Repeat(`\u4e2d\n`, 3000) + `"}`, []string{"中"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, protocol.CheckValue(raw(c.in), 0))
			out, cut := shrink(raw(c.in), 2048)
			require.True(t, cut)
			require.LessOrEqual(t, len(out), 4096)
			require.NoError(t, protocol.CheckValue(out, 0))
			for _, want := range c.contains {
				require.Contains(t, string(out), want)
			}
		})
	}
	same, cut := shrink(raw(`{"a":1}`), 7)
	require.False(t, cut)
	require.Equal(t, `{"a":1}`, string(same))
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"member`)
		b.WriteString(strings.Repeat("x", i%7))
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)))
		b.WriteString(`":2`)
	}
	return b.String()
}
