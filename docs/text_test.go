package docs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/protocol"
)

// TestSnippets reads what the docs show as JSON: messages as hookd would, and
// configs too.
func TestSnippets(t *testing.T) {
	stages := protocol.NewStageTable()
	for path, page := range pages(t) {
		for _, b := range blocks(page) {
			switch b.lang {
			case "json":
				require.NoError(t, readMessages(stages, b.text), "%s:%d", path, b.line)
			case "jsonc":
				_, err := config.Parse("config.json", []byte(b.text), nil)
				require.NoError(t, err, "%s:%d", path, b.line)
			}
		}
	}
}

func readMessages(stages *protocol.StageTable, text string) error {
	for dec := jsontext.NewDecoder(strings.NewReader(text)); ; {
		raw, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		message, err := protocol.DecodeObject(bytes.Clone(raw), 0)
		if err != nil {
			return err
		}
		method, params := message.Get("method"), message.Get("params")
		if method == nil || params == nil {
			continue
		}
		members, err := protocol.DecodeObject(params, 0)
		if err != nil {
			return err
		}
		bad := (*protocol.Error)(nil)
		if stage := stages.Method(protocol.Unquote(method)); stage != nil {
			_, bad = protocol.DecodeRequest(stage, members)
		} else if protocol.Unquote(method) == protocol.MethodEvent {
			_, bad = protocol.DecodeEvent(members)
		}
		if bad != nil {
			return bad
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinks follows every link inside the repository, to its heading too.
func TestLinks(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", path, l[1])
			if anchor != "" {
				require.Contains(t, anchors(all[target]), anchor, "%s links to %s", path, l[1])
			}
		}
	}
}

// anchors are the names that a page's headings get.
func anchors(page string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
