// Command faultagent is an agent that goes wrong: it connects to a socket and
// plays a script of bytes and delays, or one that has a name:
//
//	faultagent -socket h.sock -mode slowloris
//	faultagent -socket h.sock 'send={"jsonrpc":"2.0","id":1,"method":"hook.nothing"}' read
//
// What it reads it prints. Run it with -help for the steps of a script.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/hookd/hookd/internal/fault"
)

const steps = `
Steps:
  send=TEXT     write a line
  raw=TEXT      write as it is
  drip=D:TEXT   write byte by byte, one each time D
  flood=N:TEXT  write N lines without a pause; $N in them counts
  pad=N         write N times x
  read, read=N  read and print lines
  listen        from now on, read and print while the script goes on
  rest          read and print until hookd closes, and print "closed"
  wait=D        pause
  await=FILE    pause until a file is there
  half-close    end what is written, and go on reading
  close         end the connection, as the end of the script does
  die           kill this process

Modes:
`

func main() {
	socket := flag.String("socket", "", "the socket to connect to")
	mode := flag.String("mode", "", "a script by its name")
	tool := flag.String("tool", "bash", "the tool that a script by its name asks about")
	flag.Usage = func() {
		out := flag.CommandLine.Output()
		fmt.Fprintf(out, "faultagent is an agent that goes wrong.\n\n")
		flag.PrintDefaults()
		fmt.Fprint(out, steps)
		for _, a := range fault.Agents(*tool) {
			fmt.Fprintf(out, "  %-15s %s\n", a.Name, a.What)
		}
	}
	flag.Parse()
	if err := run(*socket, *mode, *tool, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "faultagent:", err)
		os.Exit(1)
	}
}

func run(socket, mode, tool string, script []string) error {
	if mode != "" {
		a, err := fault.FindAgent(mode, tool)
		if err != nil {
			return err
		}
		script = append(a.Script, script...)
	}
	if len(script) == 0 {
		return errors.New("nothing to do: name a -mode or give steps (-help shows both)")
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	return newPlayer(conn, os.Stdout).play(script)
}
