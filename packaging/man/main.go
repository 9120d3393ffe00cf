// Command man writes hookd's man pages and shell completions, which are made of
// the command itself:
//
//	go run ./packaging/man DIR DATE
//
// DATE, such as 2026-12-01, is shown in the pages. Pages go to DIR/man1,
// completions to DIR/completions.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/hookd/hookd/cmd/hookd/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./packaging/man DIR DATE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(dir, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	pages, completions := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, folder := range []string{pages, completions} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	hookd := cli.Command()
	hookd.DisableAutoGenTag = true // the date stands in the header
	for rest := append(hookd.Commands(), hookd); len(rest) > 0; {
		cmd := rest[0]
		rest = append(rest[1:], cmd.Commands()...)
		cmd.Long = preformatted(cmd.Long)
	}
	header := &doc.GenManHeader{Section: "1", Date: &day, Source: "hookd", Manual: "hookd"}
	if err := doc.GenManTree(hookd, header, pages); err != nil {
		return err
	}
	for name, generate := range map[string]func(path string) error{
		"hookd.bash": func(path string) error { return hookd.GenBashCompletionFileV2(path, true) },
		"_hookd":     hookd.GenZshCompletionFile,
		"hookd.fish": func(path string) error { return hookd.GenFishCompletionFile(path, true) },
	} {
		if err := generate(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}

// preformatted makes of a text's indented lines what Markdown, through which
// the pages are made, leaves as it is.
func preformatted(text string) string {
	var b strings.Builder
	was := false
	for line := range strings.Lines(text) {
		is := strings.HasPrefix(line, "  ")
		if is != was && line != "\n" {
			b.WriteString("\n")
		}
		if is {
			b.WriteString("  ")
		}
		b.WriteString(line)
		was = is
	}
	return b.String()
}
