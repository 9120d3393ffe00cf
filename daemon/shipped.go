package daemon

import (
	"io"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/mount"
)

// shipped are the kinds of in-process hooks that come with hookd.
func shipped(stderr io.Writer) []mount.Builtin {
	return []mount.Builtin{
		{
			Name:     "log",
			Validate: builtin.ValidateLog,
			New: func(c mount.BuiltinContext) (any, error) {
				return builtin.NewLog(c.Config, c.Folder, stderr)
			},
			Events: []string{"*"},
		},
	}
}
