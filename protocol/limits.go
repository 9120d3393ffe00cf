package protocol

// Limits bound what one peer may make hookd hold. The zero value of a field
// means its default.
type Limits struct {
	// MaxMessageBytes is the longest line, without its newline; default 16 MiB.
	MaxMessageBytes int `json:"max_message_bytes"`
	// MaxDepth is how deeply JSON values may nest; default 128.
	MaxDepth int `json:"max_depth,omitzero"`
	// MaxConnections is how many agents may be connected at once; default 1024.
	MaxConnections int `json:"max_connections,omitzero"`
	// MaxInFlight is how many requests of one connection may be unanswered at
	// once; default 64. More are answered with [CodeOverloaded].
	MaxInFlight int `json:"max_in_flight"`
	// MaxBytesInFlight is how many bytes of unanswered requests all agents
	// together may have; default 256 MiB. More are answered with [CodeOverloaded].
	MaxBytesInFlight int64 `json:"max_bytes_in_flight,omitzero"`
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	def := Limits{
		MaxMessageBytes:  16 << 20,
		MaxDepth:         DefaultMaxDepth,
		MaxConnections:   1024,
		MaxInFlight:      64,
		MaxBytesInFlight: 256 << 20,
	}
	if l.MaxMessageBytes == 0 {
		l.MaxMessageBytes = def.MaxMessageBytes
	}
	if l.MaxDepth == 0 {
		l.MaxDepth = def.MaxDepth
	}
	if l.MaxConnections == 0 {
		l.MaxConnections = def.MaxConnections
	}
	if l.MaxInFlight == 0 {
		l.MaxInFlight = def.MaxInFlight
	}
	if l.MaxBytesInFlight == 0 {
		l.MaxBytesInFlight = def.MaxBytesInFlight
	}
	return l
}
