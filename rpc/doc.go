// Package rpc moves JSON-RPC 2.0 messages, one per line, over any byte stream.
// It knows nothing of what the messages mean: a [Handler] does.
//
// A [Peer] is one end of a stream. Both ends may call and be called. It sits on
// github.com/sourcegraph/jsonrpc2, which runs the loop that reads and dispatches
// and the way to the writer, and adds what a daemon needs towards programs it
// does not control:
//
//   - Lines are read once, strictly, and payloads are passed on as the very bytes
//     that were sent. The library sees a small constant message in their place.
//   - Everything is bounded: the length of a line and the time it may take, open
//     requests, bytes waiting to be written. A call that is given up leaves nothing.
//   - A line that can't be read costs one error, not the connection.
//   - Nobody waits behind a peer that does not read: a message is written at once
//     when the stream takes it, and otherwise by a goroutine with a deadline.
//
// A [Server] accepts peers, [Listen] makes a Unix socket for it that belongs to
// one daemon, and [Stdio] turns a process's own stdin and stdout into a stream.
package rpc
