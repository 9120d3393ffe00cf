package daemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// The HTTP door is for agents that can post their hooks to a URL, for front
// ends that follow events, and for those who collect metrics. It is off unless
// the config opens it, listens on loopback only, and lets nobody in without the
// token: a page in a browser can reach loopback too.

// Limits of the HTTP door.
const (
	httpHeaderWait = 5 * time.Second
	httpBodyWait   = 30 * time.Second
	httpIdle       = 2 * time.Minute
	httpHeaders    = 16 << 10
	httpRequests   = 128 // at once
	httpStreams    = 64  // beside them: live views of events, and those who read metrics
	tokenBytes     = 32
)

// httpDoor is the open listener.
type httpDoor struct {
	d        *daemon
	server   *http.Server
	listener net.Listener
	token    [sha256.Size]byte // its hash: what is compared has one length
	hosts    []string
	slots    chan struct{} // of requests that are answered at once
	streams  chan struct{} // of all others, which may stay
	stop     context.CancelFunc
}

// openHTTP opens the door, or returns nil when the config leaves it shut.
func (d *daemon) openHTTP(cfg *config.Config) (*httpDoor, error) {
	if cfg.HTTP.Listen == "" {
		return nil, nil
	}
	path := cfg.HTTP.TokenFile
	if path == "" {
		path = filepath.Join(filepath.Dir(d.sockets.Agents), "http-token")
	}
	token, err := httpToken(path)
	if err != nil {
		return nil, fmt.Errorf("http.token_file: %w", err)
	}
	l, err := net.Listen("tcp", cfg.HTTP.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	if ip, ok := l.Addr().(*net.TCPAddr); !ok || !ip.IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("http.listen: %s is not on loopback", l.Addr())
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	h := &httpDoor{d: d, listener: l, token: sha256.Sum256([]byte(token)), slots: make(chan struct{}, httpRequests), streams: make(chan struct{}, httpStreams)}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
		h.hosts = append(h.hosts, host+":"+port)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/{agent}/{event}", h.agentEvent)
	mux.HandleFunc("GET /v1/events", h.events)
	mux.HandleFunc("GET /metrics", h.metrics)
	base, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.server = &http.Server{
		Handler: h.guard(onlyKnown(mux)), ReadHeaderTimeout: httpHeaderWait, IdleTimeout: httpIdle, MaxHeaderBytes: httpHeaders,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    zap.NewStdLog(d.log.Named("http")),
	}
	d.log.Info("serving HTTP", zap.String("listen", l.Addr().String()), zap.String("token_file", path))
	return h, nil
}

// serve returns when the door is closed.
func (h *httpDoor) serve() error {
	if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

// shutdown lets requests finish until ctx ends; live views end at once.
func (h *httpDoor) shutdown(ctx context.Context) {
	h.stop()
	if err := h.server.Shutdown(ctx); err != nil {
		_ = h.server.Close() // what is cut short reads an end of file
	}
}

// httpToken reads the token, and makes one when there is no file.
func httpToken(path string) (string, error) {
	text, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	token := hex.EncodeToString(raw)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(token + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	return token, err
}

// readToken reads a token that nobody else can have read or set.
func readToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	owner, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read or written by others: chmod 600 %s", path, path)
	case owner != nil && int(owner.Uid) != os.Geteuid() && owner.Uid != 0:
		return "", fmt.Errorf("%s belongs to another user", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", fmt.Errorf("the token in %s is shorter than 16 characters: remove the file to get a new one", path)
	}
	return token, nil
}

// guard lets in who has the token and is no web page.
func (h *httpDoor) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
		refuse := func(status int, why string) {
			h.d.denied.Add(1)
			h.d.book.turnedAway(rpc.Creds{PID: -1, UID: -1}, errors.New("HTTP: "+why))
			http.Error(w, "hookd: "+why, status)
		}
		switch {
		case !h.knownHost(r.Host):
			refuse(http.StatusForbidden, "unknown host")
			return
		case len(r.Header.Values("Origin")) > 0:
			refuse(http.StatusForbidden, "not for web pages")
			return
		case !bearer || subtle.ConstantTimeCompare(sum[:], h.token[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(http.StatusUnauthorized, "the bearer token is missing or wrong; it stands in http.token_file")
			return
		}
		slots := h.slots
		if r.Method == http.MethodGet {
			slots = h.streams
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			if r.Method == http.MethodGet {
				http.Error(w, "hookd: too many streams at once", http.StatusServiceUnavailable)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), crowded{}, true)) // the agent is told in its own words
		}
		next.ServeHTTP(w, r)
	})
}

func (h *httpDoor) knownHost(host string) bool {
	for _, known := range h.hosts {
		if strings.EqualFold(host, known) {
			return true
		}
	}
	return false
}

// crowded is set in the context of a request for which there is no room.
type crowded struct{}

// agentEvent answers one event of a coding agent. Whatever happens after the token
// was right is said in the agent's words with status 200: to agents every other
// status means to go on.
func (h *httpDoor) agentEvent(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	want, wrong := agent.ParseOnUnavailable(query.Get("on_unavailable"))
	if wrong != nil {
		wrong = fmt.Errorf("on_unavailable: %w", wrong)
	} else if r.Context().Value(crowded{}) != nil {
		wrong = errors.New("too many requests at once")
	}
	q := question{agent: r.PathValue("agent"), event: r.PathValue("event"), approve: isTrue(query.Get("approve")), dryRun: isTrue(query.Get("dry_run"))}
	var body []byte
	err := wrong
	if err == nil {
		// A body that does not come to its end must not hold the place for ever.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(httpBodyWait))
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.d.limits().MaxMessageBytes)))
		q.payload = string(body)
	}
	var a agent.Answer
	if err == nil && strings.TrimSpace(q.payload) == "" {
		err = errors.New("the body is empty")
	}
	if err == nil {
		if err = contradiction(&q); err != nil {
			body = nil // what it names does not count
		}
	}
	if err == nil {
		a, err = h.d.answer(r.Context(), &manager.Caller{PID: -1, UID: -1}, q)
	}
	if err != nil {
		dialect := agent.Find(q.agent) // the URL's, whatever the body looks like
		if dialect == nil {
			var unknown error
			if dialect, _, unknown = dialectOf(&q); unknown != nil {
				sayNext(w, http.StatusNotFound, reasonFor(unknown), "hookd agents lists the names for AGENT in /v1/agents/AGENT/EVENT")
				return
			}
		}
		a = dialect.Unavailable(q.event, want, reasonFor(err), body)
	}
	header := w.Header()
	header.Set("Hookd-Exit-Code", fmt.Sprint(a.ExitCode))
	header.Set("Cache-Control", "no-store")
	out := a.Stdout
	if len(out) == 0 && a.ExitCode != 0 { // an agent that knows exit codes only
		header.Set("Content-Type", "text/plain; charset=utf-8")
		out = a.Stderr
	} else {
		header.Set("Content-Type", "application/json")
	}
	_, _ = w.Write(out) // an agent that has gone reads nothing
}

// contradiction returns an error when the body names another agent or event than
// the URL. The URL wins: the answer is its agent's for its event, and what the
// body tells instead is not judged, because the agent would not read the answer.
func contradiction(q *question) error {
	named := agent.Find(q.agent)
	if named == nil {
		return nil // the URL leaves it to the body, or names nobody
	}
	d, warning, err := dialectOf(q)
	if err != nil {
		return err
	}
	if warning != "" {
		return fmt.Errorf("the URL names the agent %s, and the body is one of %s", q.agent, d.Name())
	}
	c, err := d.Read(q.event, []byte(q.payload))
	if err != nil {
		return nil // whoever judges it finds the same
	}
	for _, row := range d.Rows() {
		if !agent.SameEvent(row.Event, q.event) || agent.SameEvent(c.Event, q.event) || agent.SameEvent(c.Row.Event, q.event) {
			continue
		}
		if c.Stage == "" || c.Stage != row.Stage { // Stop is SubagentStop in a sub-agent
			return fmt.Errorf("the URL names the event %s, and the body another: %.64q", q.event, c.Event)
		}
	}
	return nil
}

// onlyKnown answers what no route is for. There is no redirect: an agent would
// not follow it with its payload, and go on.
func onlyKnown(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		clean := path.Clean(r.URL.Path) == r.URL.Path
		if pattern != "" && clean {
			mux.ServeHTTP(w, r)
			return
		}
		rec := statusOnly{header: http.Header{}}
		if pattern == "" { // the mux's own answer: there is no such path, or method
			handler.ServeHTTP(&rec, r)
		}
		const next = "use POST /v1/agents/AGENT/EVENT, GET /v1/events or GET /metrics"
		if rec.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", rec.header.Get("Allow"))
			sayNext(w, rec.status, "there is no "+r.Method+" here", next)
			return
		}
		sayNext(w, http.StatusNotFound, "there is nothing at this path", next)
	})
}

// statusOnly is a response of which the status and the header count.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// sayNext refuses a request in JSON, and says what to do instead.
func sayNext(w http.ResponseWriter, status int, text, next string) {
	b := protocol.AppendString([]byte(`{"error":`), "hookd: "+text)
	b = protocol.AppendString(append(b, `,"next":`...), next)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, "}\n"...))
}

func reasonFor(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func isTrue(word string) bool { return word == "1" || word == "true" }

// events streams events as they happen.
func (h *httpDoor) events(w http.ResponseWriter, r *http.Request) {
	patterns := r.URL.Query()["kind"]
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	var subs []protocol.Subscription
	for _, text := range patterns {
		s, err := protocol.ParseSubscription(text)
		if err != nil {
			http.Error(w, "hookd: kind: "+err.Error(), http.StatusBadRequest)
			return
		}
		subs = append(subs, s)
	}
	feed := h.d.manager.Subscribe(subs)
	defer feed.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	send := func(text string) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(httpBodyWait)) // one who does not read is cut off
		if _, err := io.WriteString(w, text); err != nil {
			return false
		}
		return rc.Flush() == nil
	}
	if !send(": hookd\n\n") {
		return
	}
	beat := time.NewTicker(15 * time.Second) // proxies close what is silent
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if !send(":\n\n") {
				return
			}
		case ev, open := <-feed.Events():
			if !open {
				return
			}
			if !send(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", ev.ID, ev.Kind, ev.AppendJSON(nil, ev.Seq, ev.Missed))) {
				return
			}
		}
	}
}

// metrics serves what the built-in metrics has counted.
func (h *httpDoor) metrics(w http.ResponseWriter, r *http.Request) {
	handler := h.d.Metrics
	if handler == nil && h.d.asks("metrics") {
		handler = h.d.takers.meter.Handler()
	}
	if handler == nil {
		http.Error(w, `hookd: there are no metrics: add "metrics": {} to hooks.builtins in the config`, http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	handler.ServeHTTP(w, r)
}
