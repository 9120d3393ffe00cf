package config

import _ "embed"

//go:embed config.schema.json
var schema string

// Schema returns the JSON Schema of the file, by which an editor completes and
// checks it. It is made from the types that read the file.
func Schema() []byte { return []byte(schema) }
