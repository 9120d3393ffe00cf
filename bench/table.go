package bench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// Print writes rows as a table. mark shows whether a target was met, such as in
// colour.
func Print(w io.Writer, rows []Row, mark func(ok bool, text string) string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tWORK\tFLOOR\tP50\tP99\tPER SECOND\tMEASURED\tTARGET\t")
	for _, r := range rows {
		bound, verdict := "≤", "missed"
		if r.AtLeast {
			bound = "≥"
		}
		if r.OK {
			verdict = "ok"
		}
		target := bound + " " + number(r.Target)
		if r.AtLeast && r.Target == 0 {
			target = "-" // to look at only
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s %s\t%s\t%s\n", r.ID, r.Work, micros(r.Floor), micros(r.P50), micros(r.P99), rate(r.Rate),
			number(r.Ratio), r.Unit, target, mark(r.OK, verdict))
	}
	return t.Flush()
}

func rate(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func micros(us float64) string {
	if us == 0 {
		return "-"
	}
	d := time.Duration(us * 1e3)
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}
