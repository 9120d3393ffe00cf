package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook/hooktest"
	"github.com/hookd/hookd/mount"
)

func TestStandInsKeepTheirPromises(t *testing.T) {
	for _, b := range standIns() {
		t.Run(b.Name, func(t *testing.T) {
			h, err := b.New(mount.BuiltinContext{})
			require.NoError(t, err)
			hooktest.Check(t, h)
		})
	}
}
