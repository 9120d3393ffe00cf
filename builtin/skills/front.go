package skills

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFront is how many bytes of a file are looked at; the front matter must
	// end within them.
	maxFront       = 64 << 10
	maxName        = 64   // characters
	maxDescription = 1024 // characters
)

// skill is what a front matter says.
type skill struct {
	name, description string
	path              string
	hidden            bool // not for models: only a user may call it
}

// readFront reads the front matter of a file.
func readFront(path string) (*skill, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would never end
		return nil, errors.New("it is not a file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFront))
	if err != nil {
		return nil, err
	}
	s, err := parseFront(data)
	if err != nil {
		return nil, err
	}
	s.path = path
	return s, nil
}

// parseFront reads the front matter with which a text begins: YAML between two
// lines of three hyphens.
func parseFront(data []byte) (*skill, error) {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, errors.New("it has no front matter: its first line must be ---")
	}
	front, _, ok := bytes.Cut(append([]byte("\n"), rest...), []byte("\n---\n"))
	if !ok {
		if front, ok = bytes.CutSuffix(append([]byte("\n"), rest...), []byte("\n---")); !ok {
			return nil, fmt.Errorf("its front matter does not end within %d bytes: a line with --- is missing", maxFront)
		}
	}
	var said struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Hidden      bool   `yaml:"disable-model-invocation"`
	}
	if err := yaml.Unmarshal(front, &said); err != nil {
		return nil, fmt.Errorf("its front matter can't be read: %w", err)
	}
	s := &skill{name: line(said.Name), description: line(said.Description), hidden: said.Hidden}
	switch {
	case s.name == "":
		return nil, errors.New("its front matter has no name")
	case utf8.RuneCountInString(s.name) > maxName:
		return nil, fmt.Errorf("its name has more than %d characters", maxName)
	case s.description == "":
		return nil, errors.New("its front matter has no description")
	case utf8.RuneCountInString(s.description) > maxDescription:
		return nil, fmt.Errorf("its description has more than %d characters", maxDescription)
	}
	return s, nil
}

// line makes one line of a text, without what can't be seen.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
