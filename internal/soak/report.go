package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

// grace is by how much an answer may come after its time.
const grace = 250 * time.Millisecond

// report is what is told in the end.
type report struct {
	rows       [][2]string
	invariants []held
}

// held is an invariant, and in what it did not hold.
type held struct {
	id, what string
	wrong    []string
}

// report looks at everything for the last time.
func (s *soak) report(length time.Duration, before, after invariant.Usage, samples *sampler) (*report, error) {
	status, err := s.house.status()
	if err != nil {
		return nil, err
	}
	var missed, escaped int64
	for _, h := range status.Hooks {
		missed += h.Missed
		escaped += h.Escaped
	}
	text, err := protocol.Marshal(status)
	if err != nil {
		return nil, err
	}
	log, err := os.ReadFile(s.house.log())
	if err != nil {
		return nil, err
	}
	written := map[string]string{"the log": string(log), "the status": string(text)}
	kept, err := s.house.record(written)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := slices.Concat(s.wrong, s.ledger.Wrong(grace+samples.lag), after.Beyond(before, invariant.Slack()), invariant.Unwell(status),
		invariant.Secrets([]string{secret}, written))
	if kept.Broken != nil {
		wrong = append(wrong, "I4: "+kept.Broken.String())
	}
	if late := s.ledger.Late(); late > grace+samples.lag {
		wrong = append(wrong, fmt.Sprintf("I1: an answer came %s after its time", late))
	}
	if err := invariant.Beside(s.alone, s.beside, samples.lag); err != nil {
		wrong = append(wrong, err.Error())
	}
	quarter, last := samples.median(0.25, 0.5), samples.median(0.75, 1)
	if last > quarter+invariant.Slack().Memory {
		wrong = append(wrong, fmt.Sprintf("I5: memory grows: %s in the second quarter, %s in the last", mib(quarter), mib(last)))
	}
	c := &s.counts
	r := &report{rows: [][2]string{
		{"faults", fmt.Sprintf("%d of %d kinds in %s", sum(c.faults), len(c.faults), length.Round(time.Second))},
		{"answers", fmt.Sprintf("%d, %.0f per second", s.ledger.Count(), float64(s.ledger.Count())/(length+s.calm).Seconds())},
		{"by action", list(c.actions)},
		{"stopped by outcome", list(c.denies)},
		{"went on without a hook", fmt.Sprint(c.degraded)},
		{"errors by code", list(c.errors)},
		{"healthy calls alone", latencies(s.alone)},
		{"healthy calls beside faults", latencies(s.beside)},
		{"slowest answer to hookd status", samples.status.Round(time.Millisecond).String()},
		{"longest lag of the machine", samples.lag.Round(time.Millisecond).String()},
		{"hooks restarted", fmt.Sprintf("%d by hookd, %d by hand, since they owed an answer", samples.restarted, c.byHand)},
		{"processes that left their hook, and were ended", fmt.Sprint(escaped)},
		{"records kept", fmt.Sprintf("%d, %d of them about gaps", kept.Records, kept.Gaps)},
		{"events missed", fmt.Sprint(missed)},
		{"memory at the start, end, most", strings.Join([]string{mib(before.Memory), mib(after.Memory), mib(samples.most())}, ", ")},
		{"memory in each tenth of the time", tenths(samples)},
		{"goroutines at the start, end", fmt.Sprintf("%d, %d", before.Goroutines, after.Goroutines)},
		{"descriptors at the start, end", fmt.Sprintf("%d, %d", before.Files, after.Files)},
		{"children at the start, end", fmt.Sprintf("%d, %d", before.Children, after.Children)},
		{"zombies at the start, end", fmt.Sprintf("%d, %d", before.Zombies, after.Zombies)},
		{"faults by kind, longest until it was over", kindList(c)},
	}}
	for _, h := range []held{
		{"I1", "one answer per request, in its time", nil},
		{"I2", "nothing allowed without an answer that was needed", nil},
		{"I3", "one outcome per hook that matched", nil},
		{"I4", "the record's chain is whole", nil},
		{"I5", "goroutines, descriptors, children, zombies and memory come back", nil},
		{"I6", "healthy calls do not suffer", nil},
		{"I7", "no secret is told", nil},
		{"I8", "status names what is wrong, and is well afterwards", nil},
		{"", "nothing else went wrong", nil},
	} {
		h.wrong = slices.DeleteFunc(slices.Clone(wrong), func(w string) bool { return class(w) != h.id })
		r.invariants = append(r.invariants, h)
	}
	return r, nil
}

// record verifies the record and adds its files to what was written.
func (h *house) record(written map[string]string) (*record.Report, error) {
	path := filepath.Join(h.folder, recordName)
	kept, err := record.Verify(context.Background(), path)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		written[filepath.Base(file)] = string(text)
	}
	return kept, nil
}

// class is the invariant that a violation is about; "" when it names none.
func class(wrong string) string {
	for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8"} {
		if strings.Contains(wrong, id+":") {
			return id
		}
	}
	return ""
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range r.rows {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	for _, h := range r.invariants {
		verdict := "ok"
		if len(h.wrong) > 0 {
			verdict = "FAILED\n  " + strings.Join(h.wrong, "\n  ")
		}
		fmt.Fprintf(t, "%s\t%s\n", strings.TrimSpace(h.id+" "+h.what), verdict)
	}
	return t.Flush()
}

// verdict is an error when an invariant did not hold.
func (r *report) verdict() error {
	var failed []string
	for _, h := range r.invariants {
		if len(h.wrong) > 0 {
			failed = append(failed, strings.TrimSpace(h.id+" "+h.what))
		}
	}
	if failed == nil {
		return nil
	}
	return errors.New("did not hold: " + strings.Join(failed, "; "))
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func latencies(l *invariant.Latencies) string {
	return fmt.Sprintf("%d, p50 %s, p99 %s", l.Count(), l.P(0.5).Round(time.Microsecond), l.P(0.99).Round(time.Microsecond))
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// tenths shows how memory went.
func tenths(m *sampler) string {
	var words []string
	for i := range 10 {
		words = append(words, fmt.Sprintf("%.0f", float64(m.median(float64(i)/10, float64(i+1)/10))/(1<<20)))
	}
	return strings.Join(words, " ") + " MiB"
}

// list shows counts, the largest first.
func list[K cmp.Ordered](counts map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	var words []string
	for _, k := range keys {
		words = append(words, fmt.Sprintf("%v %d", k, counts[k]))
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

// kindList shows one kind of fault per line.
func kindList(c *counts) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.faults)) {
		fmt.Fprintf(&b, "\n  %s\t%d, %s", name, c.faults[name], c.recovery[name].Round(10*time.Millisecond))
	}
	return b.String()
}
