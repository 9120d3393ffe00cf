package sessions

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestTable(t *testing.T) {
	table := New[int](2)
	add := func(key string) (n int) {
		table.Do(key, func(v *int) { *v++; n = *v })
		return n
	}
	require.Equal(t, 1, add("a"))
	require.Equal(t, 1, add("b"))
	require.Equal(t, 2, add("a"))
	require.Equal(t, 1, add("c"), "b was not used for longest")
	require.Equal(t, 2, table.Len())
	require.True(t, table.Look("a", func(v *int) { require.Equal(t, 2, *v) }))
	require.False(t, table.Look("b", func(*int) { t.Fatal("forgotten") }))
	var keys []string
	table.Each(func(key string, _ *int) { keys = append(keys, key) })
	require.Equal(t, []string{"c", "a"}, keys)
	table.Drop("c")
	table.Drop("none")
	require.Equal(t, 1, table.Len())
	require.Equal(t, 3, add("a"))
	require.Equal(t, Most, New[int](0).most)
}

func TestTableConcurrently(t *testing.T) {
	table := New[int](10)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				table.Do(string(rune('a'+j%5)), func(v *int) { *v++ })
				if i == 0 {
					table.Drop("z")
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	table.Each(func(_ string, v *int) { sum += *v })
	require.Equal(t, 800, sum)
}

func TestKey(t *testing.T) {
	meta := func(pairs ...string) (o protocol.Object) {
		for i := 0; i < len(pairs); i += 2 {
			o = append(o, protocol.Member{Name: pairs[i], Value: protocol.Quote(pairs[i+1])})
		}
		return o
	}
	one := meta("agent", "x", "session_id", "s", "agent_id", "main")
	require.Equal(t, Key(one), Key(meta("agent", "x", "session_id", "s")))
	require.NotEqual(t, Key(one), Key(meta("agent", "y", "session_id", "s")))
	require.Equal(t, "main", Agent(one))
	require.Equal(t, Key(nil), Key(meta("session_id", "")))
	long := meta("session_id", strings.Repeat("s", 10_000))
	require.LessOrEqual(t, len(Key(long)), maxKey)
	require.NotEqual(t, Key(long), Key(meta("session_id", strings.Repeat("s", 10_001))))
}

func TestAgents(t *testing.T) {
	var agents Agents[int]
	*agents.Of("a")++
	*agents.Of("a")++
	require.Equal(t, 2, *agents.Of("a"))
	for i := range 1000 {
		*agents.Of(strings.Repeat("x", i))++
	}
	require.Len(t, agents, maxAgents)
}
