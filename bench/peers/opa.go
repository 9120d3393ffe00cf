package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

// clients is how many ask at once for the rate.
const clients = 8

// policyAgent is T12: the Open Policy Agent as its own server over a Unix
// socket, with its decision log on and written to a file, beside hookd with an
// in-process hook and its durable record as it is by default.
func policyAgent(b *bench) (rows []row, err error) {
	program := filepath.Join(b.folder, "opa")
	if out, err := exec.CommandContext(b.ctx, "go", "build", "-o", program, "github.com/open-policy-agent/opa").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build it: %w: %s", err, out)
	}
	err = b.onOneCore(func() error {
		return b.besideOPA(program, 1, func(ours, theirs crowd) error {
			if err := b.inTurn(ours[0], theirs[0]); err != nil {
				return err
			}
			rows = append(rows, times("T12", "six rules, log on, against OPA: p50", ours[0].p(0.5), theirs[0].p(0.5), 0.25),
				times("T12", "the same: p99", ours[0].p(0.99), theirs[0].p(0.99), 0.25))
			return nil
		})
	})
	if err != nil {
		return rows, err
	}
	return rows, b.besideOPA(program, clients, func(ours, theirs crowd) error {
		us, them, err := b.ratesInTurn(ours, theirs)
		rows = append(rows, row{id: "T12", work: fmt.Sprintf("the same: rate with %d clients", clients), ours: us, them: them, unit: "per second",
			ratio: round(us / them), target: 4, atLeast: true})
		return err
	})
}

// besideOPA starts both, measures with so many clients of each, and makes sure
// that both have logged.
func (b *bench) besideOPA(program string, clients int, measure func(ours, theirs crowd) error) error {
	o, err := b.startOPA(program)
	if o != nil {
		defer o.stop()
	}
	if err != nil {
		return err
	}
	h, err := b.start("batch", map[string]any{"builtins": map[string]any{"six": map[string]any{"intercept": []string{"before_tool"}}}})
	if h != nil {
		defer h.stop()
	}
	if err != nil {
		return err
	}
	var ours, theirs crowd
	for range clients {
		c, err := h.client()
		if err != nil {
			return err
		}
		defer c.conn.Close()
		p, err := o.client()
		if err != nil {
			return err
		}
		defer p.conn.Close()
		ours, theirs = append(ours, &series{do: c.ask}), append(theirs, &series{do: p.ask})
	}
	if err := measure(ours, theirs); err != nil {
		return err
	}
	return b.logged(h.record, o.log)
}

// logged makes sure that both have logged their decisions.
func (b *bench) logged(recordPath, logPath string) error {
	time.Sleep(300 * time.Millisecond) // what is written behind the answers
	kept, err := record.Verify(b.ctx, recordPath)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(logPath)
	if err != nil {
		return err
	}
	for what, n := range map[string]int{"hookd": int(kept.Records), "OPA": strings.Count(string(text), `"decision_id"`)} {
		if n < b.calls {
			return fmt.Errorf("%s has logged %d decisions of more than %d: nothing is compared", what, n, b.calls)
		}
	}
	return nil
}

// opa is an Open Policy Agent that runs.
type opa struct {
	process *os.Process
	socket  string
	log     string
}

// startOPA starts it with the six rules.
func (b *bench) startOPA(program string) (*opa, error) {
	var policy strings.Builder
	policy.WriteString("package hook\n\nimport rego.v1\n\ndefault deny := false\n")
	for _, rule := range rules() {
		fmt.Fprintf(&policy, "\ndeny if contains(input.arguments.command, %q)\n", rule)
	}
	path := filepath.Join(b.folder, "policy.rego")
	if err := os.WriteFile(path, []byte(policy.String()), 0o600); err != nil {
		return nil, err
	}
	b.names++
	name := filepath.Join(b.folder, fmt.Sprintf("opa%d", b.names))
	o := &opa{socket: name + ".sock", log: name + ".log"}
	log, err := os.Create(o.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	o.process, err = os.StartProcess(program, []string{"opa", "run", "--server", "--addr", "unix://" + o.socket, "--log-level", "error",
		"--set", "decision_logs.console=true", "--disable-telemetry", path}, &os.ProcAttr{Files: []*os.File{nil, log, log}, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	return o, b.until("OPA answers", func() bool {
		c, err := o.client()
		if err != nil {
			return false
		}
		defer c.conn.Close()
		return c.ask() == nil
	})
}

func (o *opa) stop() {
	_ = o.process.Kill()
	_, _ = o.process.Wait()
}

// httpClient keeps its connection, writes the same request again and again and
// reads the answer.
type httpClient struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func (o *opa) client() (*httpClient, error) {
	conn, err := net.Dial("unix", o.socket)
	if err != nil {
		return nil, err
	}
	body, err := protocol.Marshal(map[string]any{"input": map[string]any{"tool": "bash", "arguments": map[string]any{"command": command()}}})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("POST /v1/data/hook/deny HTTP/1.1\r\nHost: opa\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	return &httpClient{conn, bufio.NewReader(conn), append([]byte(head), body...)}, nil
}

func (c *httpClient) ask() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(body, []byte(`"result":false`)) {
		return fmt.Errorf("unexpected answer: %s", body)
	}
	return nil
}
