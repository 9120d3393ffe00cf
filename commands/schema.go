package commands

import _ "embed"

//go:embed hooks.schema.json
var schema string

// Schema returns the JSON Schema of hooks.json in hookd's form, by which an
// editor completes and checks it. It is also schema/hooks.schema.json.
func Schema() []byte { return []byte(schema) }
