package rpc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// Agents, hooks and hookd read the same bytes with different libraries. Who is
// judged by one meaning and acts by another has slipped through, so what hookd
// accepts must mean the same to all of them: the same members in the same order,
// the same texts and the same digits.

// meaning writes JSON in one form, in which strings are hex of their UTF-8 and
// numbers their own text.
type meaning struct{ strings.Builder }

func (m *meaning) text(s string)   { m.WriteString("s" + hex.EncodeToString([]byte(s)) + " ") }
func (m *meaning) number(s string) { m.WriteString("n" + s + " ") }
func (m *meaning) other(s string)  { m.WriteString(s + " ") }

// strictMeaning is what the library says that hookd reads with.
func strictMeaning(raw []byte) (string, error) {
	var m meaning
	for dec := jsontext.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := dec.ReadToken()
		switch {
		case err == io.EOF:
			return m.String(), nil
		case err != nil:
			return "", err
		case token.Kind() == '"':
			m.text(token.String())
		case token.Kind() == '0':
			m.number(token.String())
		default:
			m.other(token.String())
		}
	}
}

// standardMeaning is what Go's standard library says.
func standardMeaning(raw []byte) (string, error) {
	var m meaning
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return m.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch token := token.(type) {
		case string:
			m.text(token)
		case json.Number:
			m.number(token.String())
		case nil:
			m.other("null")
		default:
			m.other(fmt.Sprint(token))
		}
	}
}

// pythonReader is a process that says what Python's json says.
type pythonReader struct {
	in  io.Writer
	out io.Reader
}

const pythonProgram = `
import json, struct, sys
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
class Number(str): pass
class Members(list): pass
def write(v, out):
    if isinstance(v, Number): out.append("n" + v)
    elif isinstance(v, str): out.append("s" + v.encode("utf-8", "surrogatepass").hex())
    elif isinstance(v, Members):
        out.append("{")
        for name, value in v:
            write(name, out)
            write(value, out)
        out.append("}")
    elif isinstance(v, list):
        out.append("[")
        for value in v: write(value, out)
        out.append("]")
    else: out.append({None: "null", True: "true", False: "false"}[v])
while size := stdin.read(4):
    raw = stdin.read(struct.unpack(">I", size)[0])
    try:
        out = []
        write(json.loads(raw, object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number), out)
        said = "".join(word + " " for word in out).encode()
    except Exception as trouble:
        said = b"!" + repr(trouble).encode(errors="replace")
    stdout.write(struct.pack(">I", len(said)) + said)
    stdout.flush()
`

// startPython returns nil where there is no Python.
func startPython(f *testing.F) *pythonReader {
	path, err := exec.LookPath("python3")
	if err != nil {
		f.Log("python3 is not installed: its reading is not compared")
		return nil
	}
	cmd := exec.Command(path, "-c", pythonProgram)
	in, err := cmd.StdinPipe()
	require.NoError(f, err)
	out, err := cmd.StdoutPipe()
	require.NoError(f, err)
	require.NoError(f, cmd.Start())
	f.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &pythonReader{in, out}
}

func (p *pythonReader) meaning(raw []byte) (string, error) {
	if _, err := p.in.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)); err != nil {
		return "", err
	}
	var size [4]byte
	if _, err := io.ReadFull(p.out, size[:]); err != nil {
		return "", err
	}
	said := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.out, said); err != nil {
		return "", err
	}
	if text, failed := strings.CutPrefix(string(said), "!"); failed {
		return "", errors.New(text)
	}
	return string(said), nil
}

// accepted reports whether hookd would act on raw: as a line (what is 0), as an
// approval (1), or as a decision or the params of one of the stages.
func accepted(what byte, raw []byte) bool {
	stages := protocol.Stages()
	stage := &stages[int(what/2)%len(stages)]
	var err error
	switch {
	case what == 0:
		var e envelope
		if e, err = parse(raw, protocol.DefaultMaxDepth); err == nil && (e.invalid != nil || e.err != nil) {
			return false
		}
	case what == 1:
		_, err = protocol.DecodeApproval(raw)
	case what%2 == 0:
		_, err = protocol.DecodeDecision(stage, raw)
	default:
		var params protocol.Object
		if params, err = protocol.DecodeObject(raw, 0); err == nil {
			_, bad := protocol.DecodeRequest(stage, params)
			return bad == nil
		}
	}
	return err == nil
}

func FuzzReadersAgree(f *testing.F) {
	python := startPython(f)
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"hook.before_tool","params":{"tool":"bash","arguments":{"n":9007199254740993,"f":1.0,"e":-1E+400,"z":-0}}}`,
		`{"jsonrpc":"2.0","id":"\u00e9","result":{"action":"continue"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"ID":2,"method":"x","Method":"y"}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"\u0061":1,"a":2}}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud800"}}`,
		"\ufeff{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}", `{"jsonrpc":"2.0","id":01,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"\xff\",\"b\":\"\u2028\x00\"}} {}",
		`{"action":"deny","reason":"\ud83d\ude00\u0000"}`, `{"action":"deny","Action":"continue"}`, `{"action":"modify","call":{"arguments":{"a":1e999,"a ":[null,true,{}]}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\r{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\"}\r}}",
		`{"approved":true,"approved":false}`, `{"approved":true,"by":"\/é"}`, `{"tool":"bash","Tool":"ls","arguments":{}}`,
		`{"tool":"bash","arguments":{"a":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}}`, `{"tool":"b","arguments":{"n":` + strings.Repeat("7", 5000) + `}}`,
	} {
		for what := range byte(2 * len(protocol.Stages())) {
			f.Add(what, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, what byte, raw []byte) {
		if !accepted(what, raw) || len(bytes.Trim(raw, " \t\r\n")) == 0 {
			return
		}
		want, err := strictMeaning(raw)
		require.NoError(t, err, "%q", raw)
		got, err := standardMeaning(raw)
		require.NoError(t, err, "Go's standard library refuses %q", raw)
		require.Equal(t, want, got, "Go's standard library reads %q otherwise", raw)
		if python != nil {
			got, err := python.meaning(raw)
			require.NoError(t, err, "Python refuses %q", raw)
			require.Equal(t, want, got, "Python reads %q otherwise", raw)
		}
		if what == 0 {
			require.NotContains(t, string(raw), "\r", "readers that end lines at it too would find another message")
			agreeOnEnvelope(t, raw)
		}
	})
}

// agreeOnEnvelope compares what hookd takes from a request with what a reader
// takes that does not tell upper from lower case.
func agreeOnEnvelope(t *testing.T, raw []byte) {
	e, err := parse(raw, protocol.DefaultMaxDepth)
	require.NoError(t, err)
	if !e.request {
		return
	}
	var other struct {
		ID, Params json.RawMessage
		Method     string
	}
	require.NoError(t, json.Unmarshal(raw, &other), "%q", raw)
	require.Equal(t, e.method, other.Method, "%q", raw)
	require.Equal(t, string(e.params), string(other.Params), "%q", raw)
	require.Equal(t, e.hasID, other.ID != nil, "%q", raw)
	if e.hasID {
		id, ok := parseID(jsontext.Value(other.ID))
		require.True(t, ok, "%q", raw)
		require.Equal(t, e.id, id, "%q", raw)
	}
}
