package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// player plays a script on a connection.
type player struct {
	conn *net.UnixConn
	in   *bufio.Reader
	out  io.Writer
	// listening is closed when all has been read; nil: nobody reads meanwhile.
	listening chan struct{}
	closed    bool
}

func newPlayer(conn *net.UnixConn, out io.Writer) *player {
	return &player{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: out}
}

// play plays a script and closes the connection. When hookd closes it first,
// what was still to be written is left out; that is no error.
func (p *player) play(script []string) error {
	defer p.close()
	for _, step := range script {
		name, arg, _ := strings.Cut(step, "=")
		err := p.step(name, arg)
		switch {
		case p.closed || err == nil:
		case gone(err):
			if name != "read" && name != "rest" {
				continue // what is left to read may still come
			}
			return nil
		default:
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p *player) step(name, arg string) error {
	switch name {
	case "send":
		return p.write(arg + "\n")
	case "raw":
		return p.write(arg)
	case "drip":
		return p.drip(arg)
	case "flood":
		return p.flood(arg)
	case "pad":
		return p.pad(arg)
	case "read":
		return p.read(arg)
	case "listen":
		p.listening = make(chan struct{})
		go func() { defer close(p.listening); _, _ = p.copyRest() }() // play waits for it
	case "rest":
		return p.rest()
	case "wait":
		return wait(arg)
	case "await":
		for _, err := os.Stat(arg); err != nil; _, err = os.Stat(arg) {
			time.Sleep(2 * time.Millisecond)
		}
	case "half-close":
		return p.conn.CloseWrite()
	case "close":
		p.close()
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it comes
	default:
		return errors.New("unknown step")
	}
	return nil
}

func (p *player) close() {
	p.closed = true
	p.conn.Close()
	if p.listening != nil {
		<-p.listening
	}
}

func (p *player) write(text string) error {
	_, err := io.WriteString(p.conn, text)
	return err
}

func (p *player) drip(arg string) error {
	pause, text, _ := strings.Cut(arg, ":")
	for i := range len(text) {
		if err := p.write(text[i : i+1]); err != nil {
			return err
		}
		if err := wait(pause); err != nil {
			return err
		}
	}
	return nil
}

// flood writes many lines in large pieces.
func (p *player) flood(arg string) error {
	number, text, _ := strings.Cut(arg, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(p.conn, 64<<10)
	for i := range n {
		if _, err := w.WriteString(strings.ReplaceAll(text, "$N", strconv.Itoa(i+1)) + "\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (p *player) pad(arg string) error {
	left, err := strconv.Atoi(arg)
	piece := strings.Repeat("x", 64<<10)
	for err == nil && left > 0 {
		err = p.write(piece[:min(left, len(piece))])
		left -= len(piece)
	}
	return err
}

func (p *player) read(arg string) error {
	n := 1
	if arg != "" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil {
			return err
		}
	}
	for range n {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return err
		}
		if _, err := io.WriteString(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

// rest reads to the end.
func (p *player) rest() error {
	if p.listening != nil {
		<-p.listening
	} else if _, err := p.copyRest(); err != nil && !gone(err) {
		return err
	}
	_, err := fmt.Fprintln(p.out, "closed")
	return err
}

func (p *player) copyRest() (int64, error) { return io.Copy(p.out, p.in) }

func wait(arg string) error {
	d, err := time.ParseDuration(arg)
	time.Sleep(d)
	return err
}

// gone reports whether hookd has closed the connection.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}
