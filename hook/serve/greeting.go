package serve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// welcome is the answer to a greeting.
type welcome struct {
	OK            bool                            `json:"ok"`
	Reason        string                          `json:"reason,omitzero"`
	Name          string                          `json:"name"`
	Version       int                             `json:"version"`
	Stages        []protocol.Stage                `json:"stages,omitzero"`
	MaxInFlight   int                             `json:"max_in_flight,omitzero"`
	KeyStrategies map[string]protocol.KeyStrategy `json:"key_strategies,omitzero"`
}

// hello answers the greeting. It runs on the read loop: before it is answered
// there is nothing else to do.
func (s *server) hello(params jsontext.Value) ([]byte, error) {
	var h protocol.HookHello
	if params != nil {
		if err := protocol.Unmarshal(params, &h); err != nil {
			return nil, protocol.InvalidParams("", "%v", err)
		}
	}
	switch {
	case s.greeted:
		return nil, protocol.Errorf(protocol.CodeInvalidRequest, "the greeting has been said already")
	case h.Version != 0 && h.Version != protocol.Version:
		return nil, protocol.Errorf(protocol.CodeVersionMismatch, "protocol version %d is not spoken here, %d is", h.Version, protocol.Version)
	}
	w := welcome{
		OK: true, Name: s.Name, Version: protocol.Version,
		Stages: s.stages, MaxInFlight: s.MaxInFlight, KeyStrategies: s.KeyStrategies,
	}
	if h.Stages != nil {
		w.Stages = slices.DeleteFunc(slices.Clone(h.Stages), func(stage protocol.Stage) bool { return !slices.Contains(s.stages, stage) })
	}
	s.greeted, s.refusal = true, s.misplaced(&h, w.Stages)
	if s.refusal == nil {
		s.refusal = s.configure(h.Config)
	}
	if s.refusal != nil {
		w = welcome{Reason: s.refusal.Error(), Name: s.Name, Version: protocol.Version}
	}
	return protocol.Marshal(w)
}

// misplaced reports that the hook was given a task that it can't do at all. To
// agree would leave a gate unguarded that somebody believes in.
func (s *server) misplaced(h *protocol.HookHello, agreed []protocol.Stage) error {
	switch {
	case len(h.Stages) > 0 && len(agreed) == 0 && len(s.stages) == 0:
		return fmt.Errorf("it only observes, and can't be asked at %s", joinStages(h.Stages, ", "))
	case len(h.Stages) > 0 && len(agreed) == 0:
		return fmt.Errorf("it can be asked at %s, not at %s", joinStages(s.stages, ", "), joinStages(h.Stages, ", "))
	case len(h.Events) > 0 && s.roles.Observer == nil:
		return fmt.Errorf("it observes nothing, and can't be told of %s", strings.Join(h.Events, ", "))
	}
	return nil
}

// ready reports why the hook does not work for this caller. One that never
// greets is served without a config.
func (s *server) ready() error {
	if !s.greeted {
		s.greeted, s.refusal = true, s.configure(nil)
	}
	if s.refusal != nil {
		return protocol.Errorf(protocol.CodeInvalidRequest, "it refused the greeting: %v", s.refusal)
	}
	return nil
}

// configure hands the config to the hook; none is an empty one.
func (s *server) configure(config jsontext.Value) (err error) {
	if len(config) == 0 || config.Kind() == 'n' {
		config = jsontext.Value("{}")
	}
	if c, ok := s.value.(Configurer); ok {
		defer s.recovered("Configure", &err)
		return c.Configure(config)
	}
	if string(protocol.Compact(config)) != "{}" {
		return errors.New("config: it takes none")
	}
	return nil
}
