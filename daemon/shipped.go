package daemon

import (
	"io"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/inputguard"
	"github.com/hookd/hookd/builtin/pii"
	"github.com/hookd/hookd/builtin/secrets"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/mount"
)

// When the built-ins that ship are asked, unless their entries say otherwise.
// What ends a session comes first; what takes secrets out comes before what
// reads or keeps.
const (
	firstCancel = 10
	firstGuard  = 20
	firstSecret = 30
	firstPII    = 40
)

// shipped are the kinds of in-process hooks that come with hookd, except those
// through which people rule (people.go).
func shipped(stderr io.Writer) []mount.Builtin {
	key := text.NewKey() // of hashes, where a config names none: one for each start
	return []mount.Builtin{
		{
			Name: "input_guard", Priority: firstGuard, Validate: inputguard.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return inputguard.New(c.Config, c.Folder, c.Log) },
		},
		{
			Name: "secrets", Priority: firstSecret, Validate: secrets.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return secrets.New(c.Config, c.Folder, key, c.Log) },
		},
		{
			Name: "pii", Priority: firstPII, Validate: pii.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return pii.New(c.Config, c.Folder, key, c.Log) },
		},
		{
			Name: "log", Validate: builtin.ValidateLog,
			New: func(c mount.BuiltinContext) (any, error) {
				return builtin.NewLog(c.Config, c.Folder, stderr)
			},
			Events: []string{"*"},
		},
	}
}
