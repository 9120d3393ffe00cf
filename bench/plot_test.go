package bench_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/bench"
)

func TestSVG(t *testing.T) {
	g := bench.Growth{Work: "a < b", Axis: "bytes", Points: []bench.Point{{X: 1, Floor: 1, P50: 2, P99: 3}, {X: 2, Floor: 10, P50: 2000, P99: 2001}}}
	svg := g.SVG()
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, svg)
	}
	require.Contains(t, svg, "a &lt; b")
	require.Equal(t, 3, strings.Count(svg, "<polyline"))
	require.NotContains(t, svg, "NaN")
}
