package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot's size in pixels, and where its field stands.
const (
	plotWidth, plotHeight = 720, 400
	left, right           = 80, 640
	top, bottom           = 50, 340
)

const plotStyle = `<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #59636e }
.title { font-weight: 600; fill: #1f2328 }
.ground { fill: #ffffff } .grid { stroke: #d1d9e0 }
polyline { stroke-width: 2 }
.floor { stroke: #8b949e; fill: #8b949e; stroke-dasharray: 5 4 } .p50 { stroke: #2da44e; fill: #2da44e } .p99 { stroke: #e16f24; fill: #e16f24 }
text.floor, text.p50, text.p99 { stroke: none }
@media (prefers-color-scheme: dark) { .ground { fill: #0d1117 } .grid { stroke: #30363d } text { fill: #9da7b3 } .title { fill: #e6edf3 } }
</style>
`

// SVG draws g: the times on a logarithmic scale above sizes at equal distances.
func (g Growth) SVG() string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range g.Points {
		low, high = min(low, p.Floor, p.P50), max(high, p.Floor, p.P99)
	}
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	y := func(us float64) float64 {
		return bottom - (math.Log10(us)-first)/max(last-first, 1)*(bottom-top)
	}
	x := func(i int) float64 { return left + float64(i)*(right-left)/float64(max(len(g.Points)-1, 1)) }

	var b strings.Builder
	title := html.EscapeString(g.Work)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", plotWidth, plotHeight, plotWidth, plotHeight, title)
	b.WriteString(plotStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="100%%" height="100%%"/>`+"\n"+`<text class="title" x="%d" y="28">%s</text>`+"\n", left, title)
	for e := first; e <= last; e++ {
		at := y(math.Pow10(int(e)))
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, right, at, at, left-8, at+4, micros(math.Pow10(int(e))))
	}
	for i, p := range g.Points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(i), bottom+22, p.X)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+right)/2, bottom+46, html.EscapeString(g.Axis))
	beside := math.Inf(1)
	for _, line := range []struct {
		name string
		of   func(Point) float64
	}{
		{"p99", func(p Point) float64 { return p.P99 }},
		{"p50", func(p Point) float64 { return p.P50 }},
		{"floor", func(p Point) float64 { return p.Floor }},
	} {
		var points []string
		at := 0.0
		for i, p := range g.Points {
			at = y(line.of(p))
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), at))
		}
		if math.Abs(at-beside) < 15 { // names must not cover one another
			at = beside + 15
		}
		beside = at
		fmt.Fprintf(&b, `<polyline class="%s" points="%s" style="fill: none"/><text class="%s" x="%d" y="%.1f">%s</text>`+"\n", line.name, strings.Join(points, " "), line.name, right+8, at+4, line.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
