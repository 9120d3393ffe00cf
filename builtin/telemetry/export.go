package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

const (
	maxSpans    = 4096 // that wait for the collector
	batchSpans  = 512
	batchWithin = time.Second // a span waits for others to go with it
	sendWithin  = 5 * time.Second
	maxAttempts = 4 // with pauses of 1, 2 and 4 s between them
	complainAt  = time.Minute
	// closeWithin is how long a Telemetry that is closed waits for the collector.
	closeWithin = 1500 * time.Millisecond
)

var errClosing = errors.New("hookd ends, and the collector was too slow")

// batch sends the spans that have ended to the collector, many at a time. It
// waits for nobody and makes nobody wait. It is a [sdktrace.SpanProcessor].
type batch struct {
	queue    chan sdktrace.ReadOnlySpan
	to       *collector
	exporter *otlptrace.Exporter
	log      *zap.Logger
	records  *atomic.Int64 // that were dropped before spans were made of them

	sent, failed, dropped atomic.Int64
	// What was said in the log last, and when.
	said     time.Time
	saidLost int64
	cause    error

	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   chan struct{}
	sender sync.WaitGroup
}

func newBatch(to *collector, log *zap.Logger, records *atomic.Int64) *batch {
	b := &batch{
		queue: make(chan sdktrace.ReadOnlySpan, maxSpans), to: to, exporter: otlptrace.NewUnstarted(to),
		log: log, records: records, stop: make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.sender.Go(b.run)
	return b
}

// OnStart implements [sdktrace.SpanProcessor].
func (*batch) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor].
func (b *batch) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case b.queue <- s:
	default:
		b.dropped.Add(1)
	}
}

// Shutdown implements [sdktrace.SpanProcessor]; [batch.close] does it.
func (*batch) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor]; spans leave within a second.
func (*batch) ForceFlush(context.Context) error { return nil }

// run sends what comes until it is told to stop and the queue is empty.
func (b *batch) run() {
	var waiting []sdktrace.ReadOnlySpan
	flush := func() {
		if len(waiting) > 0 {
			b.send(waiting)
		}
		waiting = waiting[:0]
		clear(waiting[:cap(waiting)]) // sent spans are not kept
		b.complain(time.Now(), false)
	}
	timer := time.NewTimer(batchWithin)
	defer timer.Stop()
	for {
		select {
		case s := <-b.queue:
			if waiting = append(waiting, s); len(waiting) == 1 {
				timer.Reset(batchWithin)
			}
			if len(waiting) >= batchSpans {
				flush()
			}
		case <-timer.C:
			flush()
		case <-b.stop:
			for len(b.queue) > 0 {
				if waiting = append(waiting, <-b.queue); len(waiting) >= batchSpans {
					flush()
				}
			}
			flush()
			b.complain(time.Now(), true)
			return
		}
	}
}

// send sends spans, several times when that may help.
func (b *batch) send(spans []sdktrace.ReadOnlySpan) {
	pause := time.Second
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeoutCause(b.ctx, sendWithin, fmt.Errorf("no answer within %s", sendWithin))
		err := b.exporter.ExportSpans(ctx, spans)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel()
		if err == nil {
			b.sent.Add(int64(len(spans)))
			return
		}
		b.cause = err
		if attempt == maxAttempts || !passes(err) || !b.wait(pause) {
			break
		}
		pause *= 2
	}
	b.failed.Add(int64(len(spans)))
}

// wait reports false when the batch is to stop meanwhile.
func (b *batch) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stop:
		return false
	}
}

// complain logs what was lost, once in a while.
func (b *batch) complain(now time.Time, last bool) {
	failed, dropped, records := b.failed.Load(), b.dropped.Load(), b.records.Load()
	if failed+dropped+records == b.saidLost || !last && !b.said.IsZero() && now.Sub(b.said) < complainAt {
		return
	}
	b.said, b.saidLost = now, failed+dropped+records
	fields := []zap.Field{zap.Int64("failed_spans", failed), zap.Int64("dropped_spans", dropped), zap.Int64("dropped_records", records)}
	if b.cause != nil {
		fields = append(fields, zap.String("error", said(b.cause)))
	}
	b.log.Warn("traces are lost; the counts are since the hook was started", fields...)
}

// close sends what there is, as far as that is possible in time.
func (b *batch) close() {
	close(b.stop)
	end := time.AfterFunc(closeWithin, func() { b.cancel(errClosing) })
	defer end.Stop()
	b.sender.Wait()
	b.cancel(nil)
	b.to.client.CloseIdleConnections()
}

// collector is where spans go, by OTLP over HTTP. It is an [otlptrace.Client].
type collector struct {
	client  *http.Client
	url     string
	headers http.Header
}

// newCollector reads the headers file. A nil way is HTTP.
func newCollector(c *config, folder string, log *zap.Logger, way http.RoundTripper) (*collector, error) {
	to, err := tracesURL(c.Endpoint)
	if err != nil {
		return nil, problem("/endpoint", "%w", err)
	}
	headers := http.Header{}
	if c.HeadersFile != "" {
		if headers, err = readHeaders(folder, c.HeadersFile); err != nil {
			return nil, problem("/headers_file", "%w", err)
		}
		if to.Scheme == "http" && !local(to) {
			log.Warn("the headers for the collector go over the network unencrypted; use https")
		}
	}
	headers.Set("Content-Type", "application/x-protobuf")
	headers.Set("User-Agent", "hookd")
	if way == nil {
		way = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConns: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: sendWithin}).DialContext, TLSHandshakeTimeout: sendWithin,
		}
	}
	client := &http.Client{
		Transport: way,
		// The headers are for this collector and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &collector{client: client, url: to.String(), headers: headers}, nil
}

func local(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Start implements [otlptrace.Client].
func (*collector) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (*collector) Stop(context.Context) error { return nil }

// UploadTraces implements [otlptrace.Client].
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire an ExportTraceServiceRequest is the same as TracesData, whose
	// package comes without gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	req.Header = c.headers.Clone()
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return answerError(res.StatusCode)
	}
	return nil
}

// answerError is the status of a collector that did not take the spans.
type answerError int

// Error returns the status.
func (s answerError) Error() string {
	return fmt.Sprintf("the collector answers %d %s", int(s), http.StatusText(int(s)))
}

// passes reports whether a failure may be gone a little later.
func passes(err error) bool {
	if s, ok := errors.AsType[answerError](err); ok {
		switch s {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	_, network := errors.AsType[*url.Error](err)
	return network
}

// said returns an error for the log, without the address it was sent to.
func said(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if s, ok := errors.AsType[answerError](err); ok {
		err = s
	}
	return clip(err.Error(), maxReason)
}
