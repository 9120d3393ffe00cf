package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcPlugin is the other half of T13: one call of a plugin over gRPC, beside
// what one more hook costs hookd.
func grpcPlugin(b *bench) (rows []row, err error) {
	err = b.onOneCore(func() (err error) { rows, err = b.besideGRPC(); return err })
	return rows, err
}

func (b *bench) besideGRPC() ([]row, error) {
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: handshake(), Plugins: goplugin.PluginSet{"hook": &hookPlugin{}}, Cmd: exec.Command(b.self, asPart, "go-plugin"),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	defer client.Kill()
	rpc, err := client.Client()
	if err != nil {
		return nil, err
	}
	dispensed, err := rpc.Dispense("hook")
	if err != nil {
		return nil, err
	}
	conn, ok := dispensed.(*grpc.ClientConn)
	if !ok {
		return nil, errors.New("the plugin is something else")
	}
	call := wrapperspb.Bytes([]byte(`{"tool":"bash","arguments":{"command":"` + command() + `"}}`))
	theirs := &series{do: func() error {
		answer := &wrapperspb.BytesValue{}
		if err := conn.Invoke(b.ctx, "/peers.Hook/BeforeTool", call, answer); err != nil {
			return err
		}
		if !bytes.Contains(answer.Value, []byte("continue")) {
			return errors.New("unexpected answer")
		}
		return nil
	}}
	us, err := b.oneMore(theirs)
	if err != nil {
		return nil, err
	}
	return []row{times("T13", "one more hook process, against one plugin of hashicorp/go-plugin (gRPC)", us, theirs.p(0.5), 0.5)}, nil
}

func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "PEERS", MagicCookieValue: "bench"}
}

// hookPlugin is the plugin on both sides. A service with one method of bytes
// needs no generated code.
type hookPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer implements [goplugin.GRPCPlugin].
func (*hookPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "peers.Hook", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "BeforeTool", Handler: beforeTool}},
	}, struct{}{})
	return nil
}

// GRPCClient implements [goplugin.GRPCPlugin].
func (*hookPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

func beforeTool(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	call := &wrapperspb.BytesValue{}
	if err := decode(call); err != nil {
		return nil, err
	}
	return wrapperspb.Bytes([]byte(`{"action":"continue"}`)), nil
}

func beGRPCPlugin() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake(), Plugins: goplugin.PluginSet{"hook": &hookPlugin{}}, GRPCServer: goplugin.DefaultGRPCServer,
		Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
	})
}
