package rpc

// Noise is one thing that arrived and had no meaning.
type Noise struct {
	Kind NoiseKind
	// ID is the id it carried, zero when there is none to read.
	ID ID
	// Detail says more, for a person. Of a line that can't be read it holds the
	// reason and the first 256 bytes, escaped.
	Detail string
}

// NoiseKind names a kind of [Noise].
type NoiseKind string

// The kinds of noise.
const (
	// NoiseLateReply is an answer to a call that was given up.
	NoiseLateReply NoiseKind = "late_reply"
	// NoiseDuplicateReply is a second answer to a call.
	NoiseDuplicateReply NoiseKind = "duplicate_reply"
	// NoiseUnknownID is an answer to nothing that was asked: another id, null,
	// none, or of another type.
	NoiseUnknownID NoiseKind = "unknown_id"
	// NoiseGarbage is a line that can't be read as a JSON-RPC message.
	NoiseGarbage NoiseKind = "garbage"
	// NoiseOversize is a line over the limit.
	NoiseOversize NoiseKind = "oversize"
	// NoiseRequest is a request or notification that nobody serves here.
	NoiseRequest NoiseKind = "request_from_peer"
	// NoiseNotificationFlood says that in this second notifications are dropped.
	NoiseNotificationFlood NoiseKind = "notification_flood"
	// NoiseCRLF is a line that ended in a carriage return; it was read.
	NoiseCRLF NoiseKind = "crlf"
)
