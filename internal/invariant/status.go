package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookd/hookd/daemon"
)

// Secrets looks for texts that must be told nowhere (I7) in what was written,
// by the name of where.
func Secrets(secrets []string, written map[string]string) (told []string) {
	for _, where := range slices.Sorted(maps.Keys(written)) {
		for _, secret := range secrets {
			if at := strings.Index(written[where], secret); at >= 0 {
				around := written[where][max(0, at-80):min(len(written[where]), at+len(secret)+20)]
				told = append(told, fmt.Sprintf("I7: a secret stands in %s: …%s…", where, around))
			}
		}
	}
	return told
}

// Unwell says what in a status is not as it is without faults (I8).
func Unwell(s *daemon.Status) (what []string) {
	if !s.Ready {
		what = append(what, "I8: hookd is not ready")
	}
	if s.Config.Error != "" {
		what = append(what, "I8: the config is refused: "+s.Config.Error)
	}
	for _, h := range s.Hooks {
		if h.State != "ready" && h.State != "on demand" { // the latter has no process
			what = append(what, fmt.Sprintf("I8: %s is %s: %s", h.Name, h.State, h.LastError))
		}
	}
	return what
}
