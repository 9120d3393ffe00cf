package metrics

import (
	"time"

	"github.com/hookd/hookd/builtin/sessions"
)

// Figures are those of one session. The zero value is one of which nothing was
// counted.
type Figures struct {
	// Started is when the session was first heard of, Last when it was last; zero
	// = never.
	Started, Last time.Time
	// Steps are calls of models, ToolCalls those of tools that went on.
	Steps, ToolCalls int64
	// Usage is what the models have used, in tokens.
	Usage sessions.Usage
	// ToolErrors are tool calls that failed, AgentErrors errors and time-outs of
	// the agent itself.
	ToolErrors, AgentErrors int64
	// Denials are calls that hookd has stopped.
	Denials int64
}

// Errors are those of tools and of the agent.
func (f *Figures) Errors() int64 { return f.ToolErrors + f.AgentErrors }

// session is what is counted. An agent may tell of one thing at a stage before
// it, at a stage after it, in an event, or all ways: the greatest count is the
// right one.
type session struct {
	started, last time.Time
	agent         string // its label

	beforeLLM, afterLLM, llmEvents    int64
	beforeTool, afterTool, toolEnds   int64
	failedTools, failedEnds, failures int64 // stages, and two kinds of events
	atStage, inEvents                 sessions.Usage
	agentErrors, denials              int64
}

func (s *session) figures() Figures {
	f := Figures{
		Started: s.started, Last: s.last,
		Steps:      max(s.beforeLLM, s.afterLLM, s.llmEvents),
		ToolCalls:  max(s.beforeTool, s.afterTool, s.toolEnds),
		ToolErrors: max(s.failedTools, s.failedEnds, s.failures), AgentErrors: s.agentErrors,
		Denials: s.denials, Usage: s.atStage,
	}
	if s.inEvents.Tokens() > s.atStage.Tokens() {
		f.Usage = s.inEvents
	}
	return f
}

// told is what a session has added to the counters of its kind of agent.
func (c *agentCells) told(was, is *Figures) {
	add := func(to interface{ Add(float64) }, was, is int64) {
		if is > was { // usage that is told another way now may be less of one kind
			to.Add(float64(is - was))
		}
	}
	add(c.steps, was.Steps, is.Steps)
	add(c.tools, was.ToolCalls, is.ToolCalls)
	add(c.toolErrors, was.ToolErrors, is.ToolErrors)
	add(c.agentErrors, was.AgentErrors, is.AgentErrors)
	add(c.input, was.Usage.Input, is.Usage.Input)
	add(c.output, was.Usage.Output, is.Usage.Output)
	add(c.unsplit, was.Usage.Total, is.Usage.Total)
}
