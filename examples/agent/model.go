package main

import (
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// script is what the user and the model say in a session.
type script struct {
	Model  string `json:"model"`
	System string `json:"system"`
	Turns  []turn `json:"turns"`
}

// turn is a message of the user, and what the model answers in its rounds.
type turn struct {
	User    string     `json:"user"`
	Answers []response `json:"answers"`
}

// response is a model's answer. Without tool calls it is the last of its turn.
type response struct {
	Content   jsontext.Value `json:"content,omitzero"` // a string, or blocks {type, text, …}
	ToolCalls []toolCall     `json:"tool_calls,omitzero"`
}

type toolCall struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

func readScript(path string) (*script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s script
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// model plays the part of a language model: whatever it is asked, it gives the
// script's next answer.
type model struct {
	name    string
	answers []response // that it has still to give in this turn
}

// answer is where a real agent calls a model, with exactly these four.
func (m *model) answer(string, []jsontext.Value, jsontext.Value, jsontext.Value) response {
	if len(m.answers) == 0 {
		return response{Content: jsontext.Value(`"I have nothing to add."`)}
	}
	next := m.answers[0]
	m.answers = m.answers[1:]
	return next
}
