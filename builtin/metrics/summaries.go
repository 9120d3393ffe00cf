package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Meter) countSummaries() {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	tokens := prometheus.ExponentialBuckets(500, 2, 12) // to a million
	m.triggered = counter("hook_summarization_triggered_total", "Conversations that were too long.")
	m.before = histogram("hook_summarization_tokens_before", "Tokens of a conversation before its middle was summarized.", tokens)
	m.after = histogram("hook_summarization_tokens_after", "Tokens of a conversation after its middle was summarized.", tokens)
	m.fallback = counter("hook_summarization_fallback_total", "Conversations whose middle was left out, because there was no summary in time.")
	m.millis = histogram("hook_summarization_duration_ms", "How long it took to shorten a conversation, in milliseconds.",
		[]float64{10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000})
}

func (m *Meter) on() bool { return m.active.Load() != nil }

// SummaryTriggered counts a conversation that was too long.
func (m *Meter) SummaryTriggered() {
	if m.on() {
		m.triggered.Inc()
	}
}

// SummaryBefore counts the tokens of a conversation before it was shortened.
func (m *Meter) SummaryBefore(tokens int) {
	if m.on() {
		m.before.Observe(float64(tokens))
	}
}

// SummaryAfter counts its tokens after that.
func (m *Meter) SummaryAfter(tokens int) {
	if m.on() {
		m.after.Observe(float64(tokens))
	}
}

// SummaryFallback counts a conversation without a summary in time.
func (m *Meter) SummaryFallback() {
	if m.on() {
		m.fallback.Inc()
	}
}

// SummaryTook counts how long shortening took.
func (m *Meter) SummaryTook(d time.Duration) {
	if m.on() {
		m.millis.Observe(float64(d) / float64(time.Millisecond))
	}
}
