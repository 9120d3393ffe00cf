// Command img draws the pictures of the docs: of each text file in docs/img it
// makes an SVG beside it. Run it from the root of the repository:
//
//	go run ./docs/img
//
// A text has one thing per line. Lengths are in steps of 10 pixels.
//
//	title TEXT                           read to those who can't see the picture
//	frame ID X Y W H [STYLE] | TITLE     a room around others
//	box ID X Y W H [STYLE] | TITLE | LINE …
//	text X Y [STYLE] | TEXT
//	arrow FROM TO [both] [dashed] [STYLE] | LABEL
//
// FROM and TO are a box or frame and a side: door.left, door.right+2 (two steps down
// from the middle of the side). Styles are agent, house, hook, file, bad, quiet.
package main

import (
	"errors"
	"fmt"
	"html"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	texts, err := filepath.Glob("docs/img/*.txt")
	if err == nil && len(texts) == 0 {
		err = errors.New("no docs/img/*.txt here: run it from the root of the repository")
	}
	for _, path := range texts {
		err = errors.Join(err, redraw(path))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func redraw(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	svg, err := draw(string(text))
	if err != nil {
		return fmt.Errorf("%s:%w", path, err)
	}
	return os.WriteFile(svgPath(path), []byte(svg), 0o644)
}

func svgPath(text string) string { return strings.TrimSuffix(text, ".txt") + ".svg" }

const (
	step    = 10 // pixels
	leading = 17 // from line to line
	radius  = 8
)

// style is what holds for both modes; in the dark the colours of dark come on
// top. The picture brings its own background, so that it can be read anywhere.
const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.label { font-size: 12px; fill: #59636e; paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
.line { fill: none; stroke: #59636e; stroke-width: 1.6 }
.head { fill: #59636e }
.dashed { stroke-dasharray: 5 4 }
.ground { fill: #ffffff; stroke: #d1d9e0 }
.box { fill: #f6f8fa; stroke: #8b949e; stroke-width: 1.3 }
.frame { fill: none; stroke: #8b949e; stroke-dasharray: 2 3 }
.agent .box { fill: #ddf4ff; stroke: #218bff }
.house .box { fill: #dafbe1; stroke: #2da44e }
.hook .box { fill: #fff1e5; stroke: #e16f24 }
.file .box { fill: #fff8c5; stroke: #bf8700 }
.bad .box { fill: #ffebe9; stroke: #cf222e }
.bad .line { stroke: #cf222e } .bad .head { fill: #cf222e }
.bad text, text.bad { fill: #a40e26 }
.quiet text, text.quiet { fill: #59636e }
`

const dark = `
text { fill: #e6edf3 }
.label { fill: #9da7b3; stroke: #0d1117 }
.line { stroke: #9da7b3 } .head { fill: #9da7b3 }
.ground { fill: #0d1117; stroke: #30363d }
.box { fill: #161b22; stroke: #6e7681 }
.frame { stroke: #6e7681 }
.agent .box { fill: #0c2d6b; stroke: #388bfd }
.house .box { fill: #033a16; stroke: #2ea043 }
.hook .box { fill: #4d2200; stroke: #db6d28 }
.file .box { fill: #3b2300; stroke: #bb8009 }
.bad .box { fill: #490202; stroke: #f85149 }
.bad .line { stroke: #f85149 } .bad .head { fill: #f85149 }
.bad text, text.bad { fill: #ffa198 }
.quiet text, text.quiet { fill: #9da7b3 }
`

// picture is one that is being drawn.
type picture struct {
	places        map[string]rect
	width, height float64
	title         string
	body          strings.Builder
}

type rect struct{ x, y, w, h float64 }

type point struct{ x, y float64 }

// draw makes the SVG of a text. An error begins with the number of the line.
func draw(text string) (string, error) {
	p := &picture{places: map[string]rect{}}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := p.add(line); err != nil {
			return "", fmt.Errorf("%d: %w", i+1, err)
		}
	}
	w, h := p.width+2*step, p.height+2*step
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">
<style>%s@media (prefers-color-scheme: dark) {%s}
</style>
<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="%d"/>
%s</svg>
`, w, h, w, h, html.EscapeString(p.title), style, dark, w-1, h-1, radius, p.body.String()), nil
}

func (p *picture) add(line string) error {
	texts := strings.Split(line, "|")
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	words := strings.Fields(texts[0])
	texts = texts[1:]
	switch words[0] {
	case "title":
		p.title = strings.TrimSpace(strings.TrimPrefix(line, "title"))
		return nil
	case "arrow":
		return p.arrow(words[1:], strings.Join(texts, " "))
	case "text":
		at, rest, err := numbers(words[1:], 2)
		if err != nil || len(texts) != 1 {
			return fmt.Errorf("want: text X Y [STYLE] | TEXT")
		}
		p.text(at[0]*step, at[1]*step, "start", strings.Join(rest, " "), texts[0])
		return nil
	case "frame", "box":
		at, styles, err := numbers(words[min(2, len(words)):], 4)
		if err != nil || len(texts) == 0 {
			return fmt.Errorf("want: %s ID X Y W H [STYLE] | TITLE …", words[0])
		}
		r := rect{at[0] * step, at[1] * step, at[2] * step, at[3] * step}
		p.width, p.height = max(p.width, r.x+r.w), max(p.height, r.y+r.h)
		p.places[words[1]] = r
		fmt.Fprintf(&p.body, `<g class="%s"><rect class="%s" x="%g" y="%g" width="%g" height="%g" rx="%d"/>`+"\n",
			strings.Join(styles, " "), words[0], r.x, r.y, r.w, r.h, radius)
		if words[0] == "frame" {
			p.text(r.x+12, r.y+20, "start", "title", texts[0])
		} else {
			p.inside(r, texts)
		}
		fmt.Fprintln(&p.body, "</g>")
		return nil
	}
	return fmt.Errorf("unknown word %q", words[0])
}

// numbers reads the first n words as numbers and returns the rest.
func numbers(words []string, n int) (found []float64, rest []string, err error) {
	if len(words) < n {
		return nil, nil, errors.New("too few numbers")
	}
	for _, w := range words[:n] {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, f)
	}
	return found, words[n:], nil
}

// inside writes a title and lines into the middle of a box.
func (p *picture) inside(r rect, texts []string) {
	y := r.y + r.h/2 - float64(len(texts)-1)*leading/2 + 5
	class := "title"
	for i, text := range texts {
		p.text(r.x+r.w/2, y+float64(i)*leading, "middle", class, text)
		class = ""
	}
}

func (p *picture) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&p.body, `<text x="%g" y="%g" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

var anchorForm = regexp.MustCompile(`^(\w+)\.(left|right|top|bottom)([+-][\d.]+)?$`)

// anchor finds a place on a side, and the direction that leads away
// from it.
func (p *picture) anchor(name string) (at, away point, err error) {
	m := anchorForm.FindStringSubmatch(name)
	if m == nil {
		return at, away, fmt.Errorf("%q is no place such as door.left+2", name)
	}
	r, ok := p.places[m[1]]
	if !ok {
		return at, away, fmt.Errorf("there is no %q above", m[1])
	}
	along := 0.0
	if m[3] != "" {
		if along, err = strconv.ParseFloat(m[3], 64); err != nil {
			return at, away, err
		}
		along *= step
	}
	switch m[2] {
	case "left":
		return point{r.x, r.y + r.h/2 + along}, point{-1, 0}, nil
	case "right":
		return point{r.x + r.w, r.y + r.h/2 + along}, point{1, 0}, nil
	case "top":
		return point{r.x + r.w/2 + along, r.y}, point{0, -1}, nil
	default:
		return point{r.x + r.w/2 + along, r.y + r.h}, point{0, 1}, nil
	}
}

func (p *picture) arrow(words []string, label string) error {
	if len(words) < 2 {
		return fmt.Errorf("want: arrow FROM TO [both] [dashed] [STYLE] | LABEL")
	}
	from, out, err := p.anchor(words[0])
	if err != nil {
		return err
	}
	to, in, err := p.anchor(words[1])
	if err != nil {
		return err
	}
	styles := words[2:]
	class := "line"
	if slices.Contains(styles, "dashed") {
		class += " dashed"
	}
	way := route(from, out, to, in)
	fmt.Fprintf(&p.body, `<g class="%s">`, strings.Join(styles, " "))
	fmt.Fprintf(&p.body, `<path class="%s" d="M%s"/>`, class, join(way, " L"))
	p.head(to, in)
	if slices.Contains(styles, "both") {
		p.head(from, out)
	}
	if label != "" {
		p.label(way, label)
	}
	fmt.Fprintln(&p.body, "</g>")
	return nil
}

// route leads from one side to another, in straight lines with one or two
// corners where they don't face each other.
func route(from, out, to, in point) []point {
	switch {
	case out.x != 0 && in.x != 0 && from.y != to.y:
		x := (from.x + to.x) / 2
		if out == in { // around both
			x = max(from.x*out.x, to.x*out.x)*out.x + 2*step*out.x
		}
		return []point{from, {x, from.y}, {x, to.y}, to}
	case out.y != 0 && in.y != 0 && from.x != to.x:
		y := (from.y + to.y) / 2
		return []point{from, {from.x, y}, {to.x, y}, to}
	case out.x != 0 && in.y != 0:
		return []point{from, {to.x, from.y}, to}
	case out.y != 0 && in.x != 0:
		return []point{from, {from.x, to.y}, to}
	}
	return []point{from, to}
}

func join(way []point, sep string) string {
	var parts []string
	for _, at := range way {
		parts = append(parts, fmt.Sprintf("%g,%g", at.x, at.y))
	}
	return strings.Join(parts, sep)
}

// head draws an arrow's head at a side that away leads away from.
func (p *picture) head(at, away point) {
	side := point{away.y * 4.5, away.x * 4.5}
	back := point{at.x + away.x*9, at.y + away.y*9}
	fmt.Fprintf(&p.body, `<path class="head" d="M%s Z"/>`, join([]point{at, {back.x + side.x, back.y + side.y}, {back.x - side.x, back.y - side.y}}, " L"))
}

// label writes beside the longest part of the way.
func (p *picture) label(way []point, text string) {
	var a, b point
	for i := range len(way) - 1 {
		if u, v := way[i], way[i+1]; length(u, v) > length(a, b) {
			a, b = u, v
		}
	}
	if a.y == b.y {
		p.text((a.x+b.x)/2, a.y-7, "middle", "label", text)
	} else {
		p.text(a.x+9, (a.y+b.y)/2+4, "start", "label", text)
	}
}

func length(a, b point) float64 { return max(a.x-b.x, b.x-a.x) + max(a.y-b.y, b.y-a.y) }
