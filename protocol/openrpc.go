package protocol

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// OpenRPC returns a description of the agents' socket in the OpenRPC format:
// every method with its params, result and errors, made of the stage table and
// referring to the JSON Schemas beside it.
func OpenRPC() []byte {
	methods := []node{
		{
			"name": MethodHello, "paramStructure": "by-name",
			"summary": "Greets. It comes first or not at all, and once per connection.",
			"params": []node{
				param("name", true, of("string", "What the agent calls itself.")),
				param("version", false, node{"description": "The protocol version.", "const": Version}),
				param("client", false, of("object", "The program: {name, version}.")),
				param("session_id", false, of("string", "Used where a request's meta names none.")),
				param("deadline_ms", false, of("integer", "How long this agent waits for a decision, in milliseconds.", node{"minimum": 300})),
				param("approval_deadline_ms", false, of("integer", "How long it waits for an approval, in milliseconds.", node{"minimum": 300})),
				param("events", false, of("boolean", "The agent sends its own events, so none are derived from its calls.")),
			},
			"result": node{"name": "welcome", "schema": objectOf("Who is there and what may be sent.", node{
				"ok": of("boolean", "Always true."), "name": of("string", "hookd."), "version": of("integer", "The protocol version."),
				"server": of("object", "The program: {name, version}."), "generation": of("integer", "The version of the config that holds."),
				"limits": of("object", "{max_message_bytes, max_in_flight}."),
			}, "ok", "name", "version")},
		},
	}
	for _, s := range Stages() {
		var params []node
		request := paramsSchema(&s)["properties"].(node)
		for _, name := range slices.Concat(s.Subject, s.Fixed, slices.Sorted(maps.Keys(commonSchemas()))) {
			if request[name] != nil {
				params = append(params, param(name, slices.Contains(s.Required, name), fileRef("request", s.Name, "properties", name)))
			}
		}
		methods = append(methods, node{
			"name": s.Method(), "paramStructure": "by-name", "summary": paramsSchema(&s)["description"],
			"params": params, "result": node{"name": "decision", "schema": fileRef("result", s.Name)},
		})
	}
	methods = append(methods,
		node{
			"name": MethodEvent, "paramStructure": "by-name", "summary": "A notification: something happened. Nothing is answered.",
			"params": []node{
				param("kind", true, node{"description": "One of hookd's list, or a kind of your own that starts with x_.", "type": "string"}),
				param("meta", false, node{"$ref": schemaURL("request") + "#/$defs/meta"}),
				param("time", false, of("string", "When, in RFC 3339.", node{"format": "date-time"})),
				param("payload", false, of("object", "What the kind says.")),
				param("severity", false, node{"enum": severities()}),
			},
		},
		node{
			"name": MethodCancel, "paramStructure": "by-name", "summary": "A notification: the answer to a request is no longer wanted. It is answered with -32800.",
			"params": []node{param("id", true, node{"description": "The request's id.", "type": []string{"string", "integer"}})},
		})
	doc := node{
		"openrpc": "1.3.2",
		"info": node{
			"title": "hookd", "version": "1", "license": node{"name": "Apache-2.0"},
			"description": "JSON-RPC 2.0 over a Unix socket, one message per line. The same methods are spoken to hook processes on their stdio.",
		},
		"methods":    methods,
		"components": node{"errors": openRPCErrors()},
	}
	v, _ := Marshal(doc) // maps, lists and texts: neither call can fail
	_ = v.Indent(jsontext.WithIndent("  "))
	return append(v, '\n')
}

func openRPCErrors() node {
	errs := node{}
	for name, e := range map[string]Error{
		"parse":             {Code: CodeParse, Message: "the line is not JSON that can be trusted"},
		"invalid_request":   {Code: CodeInvalidRequest, Message: "no JSON-RPC request: a batch, a bad id, an id in flight"},
		"method_not_found":  {Code: CodeMethodNotFound, Message: "unknown method"},
		"invalid_params":    {Code: CodeInvalidParams, Message: "data.path names the field"},
		"internal":          {Code: CodeInternal, Message: "internal error"},
		"cancelled":         {Code: CodeCancelled, Message: "cancelled"},
		"message_too_large": {Code: CodeMessageTooLarge, Message: "over max_message_bytes"},
		"overloaded":        {Code: CodeOverloaded, Message: "too many requests or bytes in flight"},
		"shutting_down":     {Code: CodeShuttingDown, Message: "shutting down"},
		"unauthorized":      {Code: CodeUnauthorized, Message: "this process may not connect"},
		"version_mismatch":  {Code: CodeVersionMismatch, Message: "another protocol version"},
	} {
		errs[name] = node{"code": e.Code, "message": e.Message}
	}
	return errs
}

func param(name string, required bool, schema node) node {
	return node{"name": name, "required": required, "schema": schema}
}

// fileRef refers into one of the schemas beside the document.
func fileRef(file string, stage Stage, path ...string) node {
	ref := schemaURL(file) + "#/$defs/" + string(stage)
	for _, p := range path {
		ref += "/" + p
	}
	return node{"$ref": ref}
}

func schemaURL(file string) string { return "https://hookd.dev/schema/" + file + ".schema.json" }
