package mount

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook/hooktest"
	"github.com/hookd/hookd/hook/serve"
	"github.com/hookd/hookd/protocol"
)

// faultMode is the variable that turns the test binary into a hook, and says
// which fault it has.
const faultMode = "MOUNT_TEST_FAULT"

// self starts children through the test binary.
var self *child.Helper

func TestMain(m *testing.M) {
	self = child.Main()
	switch mode, ok := os.LookupEnv(faultMode); {
	case mode == "reference":
		serve.Main(hooktest.Hook())
	case ok:
		faultHook(mode)
		return
	}
	// The tests of real children wait more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m)
}

// faultHook is a hook that is right in all but one thing. A call whose call_id
// is "fine" is answered properly in every mode that lives so long.
func faultHook(mode string) {
	mode, arg, _ := strings.Cut(mode, "=")
	n, _ := strconv.Atoi(arg)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
	answer := func(id, result string) { say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result) }
	next := func() (id, method, callID string) {
		if !in.Scan() {
			os.Exit(0)
		}
		obj, _ := protocol.DecodeObject(in.Bytes(), 0)
		params, _ := protocol.ParseObject(obj.Get("params"))
		if v := obj.Get("method"); v != nil { // else it is an answer
			id, method = string(obj.Get("id")), protocol.Unquote(v)
		}
		if v := params.Get("call_id"); v != nil {
			callID = protocol.Unquote(v)
		}
		return id, method, callID
	}

	switch mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "I can't start")
		os.Exit(n)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	hello, _, _ := next()
	switch mode {
	case "hello-never":
		next()
	case "closestdin":
		os.Stdin.Close()
		answer(hello, `{"ok":true}`)
		time.Sleep(time.Hour)
	case "hello-refuse":
		answer(hello, `{"ok":false,"reason":"no licence"}`)
	case "hello-v99":
		answer(hello, `{"version":99}`)
	case "hello-stages":
		answer(hello, `{"name":"picky","stages":["before_tool"],"key_strategies":{"seen":"merge_list"},"max_in_flight":4}`)
	default:
		answer(hello, `{"ok":true}`)
	}
	switch mode {
	case "crashloop":
		os.Exit(3)
	case "noread":
		time.Sleep(time.Hour)
	case "ignoreterm":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP) // even less: it does not see the end of stdin either
	case "stderr":
		fmt.Fprintln(os.Stderr, "one\x1b[31m\ntwo")
	}
	for {
		id, method, callID := next()
		if callID == "fine" {
			answer(id, `{"reason":"fine"}`)
			continue
		}
		if id == "" && method != protocol.MethodEvent {
			continue
		}
		switch mode {
		case "late", "serial":
			time.Sleep(time.Duration(n) * time.Millisecond)
			answer(id, `{"reason":"in the end"}`)
		case "dup":
			answer(id, `{"reason":"first"}`)
			answer(id, `{"action":"deny"}`)
		case "wrongid":
			answer("99999", `{}`)
		case "stringid":
			answer(`"`+id+`"`, `{}`)
		case "nullid":
			answer("null", `{}`)
		case "garbage":
			say("Traceback (most recent call last):")
		case "broken":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny}}`, id)
		case "noise-then-answer":
			say("debug: got a call")
			answer(id, `{"action":"deny","reason":"still read"}`)
		case "partial":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"res`, id)
		case "bigline":
			answer(id, `{"reason":"`+strings.Repeat("x", n)+`"}`)
		case "deep":
			answer(id, `{"state":{"x":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}}`)
		case "badutf8":
			answer(id, "{\"reason\":\"\xff\"}")
		case "dupkey":
			answer(id, `{"action":"deny","action":"continue"}`)
		case "case":
			answer(id, `{"Action":"deny"}`)
		case "type":
			answer(id, `{"action":"allow","reason":5}`)
		case "bothresult":
			say(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}`, id)
		case "error":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no model"}}`, id)
		case "exit-in-call":
			os.Exit(n)
		case "signal-in-call":
			_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
			time.Sleep(time.Hour)
		case "request":
			for i := range n {
				say(`{"jsonrpc":"2.0","id":%d,"method":"please"}`, i)
			}
			answer(id, `{}`)
		case "floodout":
			for range n {
				say(`{"jsonrpc":"2.0","method":"hook.progress"}`)
			}
			answer(id, `{}`)
		}
	}
}
