package sessions

import (
	"strings"

	"github.com/hookd/hookd/protocol"
)

// Agents holds a T for each agent of a session, by [Agent]. The zero value is
// empty.
type Agents[T any] map[string]*T

// maxAgents is how many agents of a session are remembered.
const maxAgents = 64

// Of finds what belongs to an agent, or makes a zero T. When there are too many
// agents, another one is forgotten.
func (a *Agents[T]) Of(agent string) *T {
	if v := (*a)[agent]; v != nil {
		return v
	}
	if *a == nil {
		*a = Agents[T]{}
	}
	for other := range *a {
		if len(*a) < maxAgents {
			break
		}
		delete(*a, other)
	}
	v := new(T)
	(*a)[strings.Clone(agent)] = v
	return v
}

// Agent returns the key of one agent among those of a session.
func Agent(meta protocol.Object) string { return key(protocol.MetaString(meta, "agent_id")) }
