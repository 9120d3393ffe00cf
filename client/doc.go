// Package client is for people who write an agent in Go: it asks hookd about
// every step of the agent's loop and reports what happens.
//
//   - [Dial] connects to the daemon of this machine; [New] speaks over a stream
//     that you have opened yourself. One [Client] serves a whole program and may
//     be used from several goroutines.
//   - Every step has a method: [Client.UserMessage], [Client.BeforeAgent],
//     [Client.SystemPrompt], then in each round [Client.InjectInstructions],
//     [Client.BeforeLLM], [Client.AfterLLM], for each tool call
//     [Client.BeforeTool] and [Client.AfterTool], and [Client.BeforeCompact],
//     [Client.Stop], [Client.Output]. Leave out those that your agent has no
//     step for. Their comments say what the agent does with the answer.
//   - Go on only when the verdict says Allowed, and go on with what stands in the
//     verdict, not with what you asked about: hooks may have changed it.
//   - A zero verdict is a no, and so is every error, lost connection and timeout.
//     The verdict is complete without the error, which is for your log.
//   - [Client.Event] tells observers what else happens. It never waits.
//
// Text that is not valid UTF-8 reaches hookd with U+FFFD in place of the bad
// bytes, and the verdict holds it in that form.
package client
