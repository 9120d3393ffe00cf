package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFresh fails when a picture is not what its text says.
func TestFresh(t *testing.T) {
	texts, err := filepath.Glob("*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, texts)
	for _, path := range texts {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		want, err := draw(string(text))
		require.NoError(t, err, path)
		got, err := os.ReadFile(svgPath(path))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s is not fresh: go run ./docs/img", svgPath(path))
	}
}

func TestDraw(t *testing.T) {
	svg, err := draw(`
		# a comment
		title Two & more
		box a 1 1 10 4 agent | A | <b>
		frame f 20 0 12 20 | F
		box b 21 10 10 4 | B
		arrow a.right b.left-1 both | "says"
		arrow a.bottom b.left dashed bad
		text 1 30 quiet | below`)
	require.NoError(t, err)
	require.Contains(t, svg, `aria-label="Two &amp; more"`)
	require.Contains(t, svg, `&lt;b&gt;`)
	require.Contains(t, svg, `M110,30 L160,30 L160,110 L210,110`, "a way with two corners")
	require.Contains(t, svg, `M60,50 L60,120 L210,120`, "and one with one")
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

func TestDrawErrors(t *testing.T) {
	for text, want := range map[string]string{
		"circle a":                         `1: unknown word "circle"`,
		"\nbox a 1 1 10":                   "2: want: box ID X Y W H [STYLE] | TITLE …",
		"box a 1 1 10 4":                   "1: want: box ID X Y W H [STYLE] | TITLE …",
		"box":                              "1: want: box ID X Y W H [STYLE] | TITLE …",
		"frame a 1 x 10 4 | A":             "1: want: frame ID X Y W H [STYLE] | TITLE …",
		"text 1 | A":                       "1: want: text X Y [STYLE] | TEXT",
		"arrow a.left":                     "1: want: arrow FROM TO [both] [dashed] [STYLE] | LABEL",
		"arrow a.left b.left":              `1: there is no "a" above`,
		"box a 1 1 9 4|A\narrow a.left a":  `2: "a" is no place such as door.left+2`,
		"box a 1 1 9 4|A\narrow a.up a.up": `2: "a.up" is no place such as door.left+2`,
	} {
		_, err := draw(text)
		require.EqualError(t, err, want, "%q", text)
	}
}
