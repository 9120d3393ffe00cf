package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Mode is a way to go wrong by name, for every call or for the whole life of a
// hook.
type Mode struct {
	// Name is what stands before the "=", Arg what stands behind it.
	Name, Arg string
	// Life is what goes wrong beside the calls; "" when nothing does.
	Life Life
	// Calls are the orders for every call.
	Calls Orders
	// Number is Arg as a count, a size in bytes or a number of milliseconds; 0
	// when the mode has none.
	Number int
}

// Life is what a hook does wrong outside of calls.
type Life string

// The ways of life. Those up to Version99 spare the greeting, and are for what
// stands in Mode.Number.
const (
	ExitAtStart  Life = "exit"         // ends before it is greeted
	StopAtStart  Life = "stop"         // is stopped before it is greeted
	NoGreeting   Life = "hello-never"  // does not answer the greeting
	Refuses      Life = "hello-refuse" // answers it with a no
	Version99    Life = "version99"    // speaks another protocol
	CrashLoop    Life = "crashloop"    // ends so many milliseconds after the greeting
	ClosesStdin  Life = "closestdin"   // closes its stdin and answers the greeting
	ClosesStdout Life = "closestdout"  // closes its stdout after the greeting
	NeverReads   Life = "noread"       // reads nothing after the greeting
	IgnoresTerm  Life = "ignoreterm"   // neither the end of stdin nor SIGTERM ends it
)

// kind says what a mode's argument is.
type kind int

const (
	bare kind = iota
	count
	size
	period
)

type entry struct {
	name   string
	arg    kind
	number int // when no argument is given
	what   string
	life   Life
	calls  func(n int) Orders
}

func always(o Orders) func(int) Orders { return func(int) Orders { return o } }

func says(result string) func(int) Orders { return always(Says(result)) }

func writes(line string) func(int) Orders { return always(Orders{Write: line}) }

// entries are all modes, in the order in which people read them.
func entries() []entry {
	three := 3
	return []entry{
		{name: "obey", what: "says yes, or does what the call's context orders", calls: always(Orders{})},
		{name: "well", what: "says yes, whatever a call orders", calls: always(Orders{})},

		{name: "exit", arg: count, what: "ends with this code before it is greeted", life: ExitAtStart},
		{name: "stop", what: "is stopped before it is greeted", life: StopAtStart},
		{name: "hello-never", what: "does not answer the greeting", life: NoGreeting},
		{name: "hello-refuse", what: "answers the greeting with a no", life: Refuses},
		{name: "version99", what: "speaks version 99 of the protocol", life: Version99},
		{name: "crashloop", arg: period, number: 100, what: "ends so long after the greeting", life: CrashLoop},
		{name: "closestdin", what: "closes its stdin and goes on", life: ClosesStdin},
		{name: "closestdout", what: "closes its stdout after the greeting and goes on", life: ClosesStdout},
		{name: "noread", what: "reads nothing after the greeting", life: NeverReads},
		{name: "ignoreterm", what: "is ended neither by the end of stdin nor by SIGTERM", life: IgnoresTerm},

		{name: "never", what: "does not answer calls", calls: always(Orders{Silent: true})},
		{name: "late", arg: period, number: 5300, what: "answers so much later", calls: func(n int) Orders { return Orders{LateMS: n} }},
		{name: "crash", what: "ends with 3 in a call", calls: always(Orders{Silent: true, Exit: &three})},
		{name: "segv", what: "dies of SIGSEGV in a call", calls: always(Orders{Silent: true, Signal: int(syscall.SIGSEGV)})},
		{name: "kill", what: "dies of SIGKILL in a call", calls: always(Orders{Silent: true, Signal: int(syscall.SIGKILL)})},
		{name: "sigstop", what: "is stopped in a call", calls: always(Orders{Silent: true, Signal: int(syscall.SIGSTOP)})},
		{name: "forkhold", what: "ends in a call and leaves a process that holds its pipes", calls: always(Orders{Leave: "hold", Silent: true, Exit: new(int)})},
		{name: "setsid", what: "the same, in a session of its own", calls: always(Orders{Leave: "escape", Silent: true, Exit: new(int)})},
		{name: "forks", arg: count, number: 1000, what: "starts so many processes", calls: func(n int) Orders { return Orders{Forks: n} }},
		{name: "burn", arg: period, number: 1000, what: "uses all cores for so long", calls: func(n int) Orders { return Orders{BurnMS: n} }},
		{name: "memory", arg: size, number: 256 << 20, what: "uses so much memory", calls: func(n int) Orders { return Orders{Alloc: n} }},

		{name: "dup", what: "answers twice", calls: always(Orders{Write: Yes, Then: `$RESULT{"action":"deny"}}`})},
		{name: "wrongid", what: "answers another id", calls: writes(`{"jsonrpc":"2.0","id":99999,"result":{}}`)},
		{name: "stringid", what: "answers with the id as a string", calls: writes(`{"jsonrpc":"2.0","id":"$ID","result":{}}`)},
		{name: "nullid", what: "answers with the id null", calls: writes(`{"jsonrpc":"2.0","id":null,"result":{}}`)},
		{name: "noid", what: "answers without an id", calls: writes(`{"jsonrpc":"2.0","result":{}}`)},
		{name: "garbage", what: "prints a trace instead of an answer", calls: writes("Traceback (most recent call last):")},
		{name: "noise", what: "prints a line and then answers", calls: always(Orders{Write: "debug: got a call", Then: Yes})},
		{name: "partial", what: "writes half a line and stalls", calls: always(Orders{Write: `{"jsonrpc":"2.0","id":$ID,"res`, Open: true})},
		{name: "bigline", arg: size, number: 64 << 20, what: "answers with a text of this size", calls: func(n int) Orders {
			return Orders{Write: `$RESULT{"reason":"$PAD"}}`, Pad: n}
		}},
		{name: "deep", arg: count, number: 10_001, what: "answers with arrays so deep", calls: func(n int) Orders {
			return Orders{Write: `$RESULT{"state":{"x":$DEEP}}}`, Depth: n}
		}},
		{name: "badutf8", what: "answers with a byte that is not UTF-8", calls: says(`{"reason":"$FF"}`)},
		{name: "surrogate", what: "answers with half a surrogate pair", calls: says(`{"reason":"\ud800"}`)},
		{name: "control", what: "answers with a raw control character", calls: says(`{"reason":"$NUL"}`)},
		{name: "bom", what: "answers behind a byte order mark", calls: writes("$BOM" + Yes)},
		{name: "crlf", what: "ends its lines as Windows does", calls: writes(Yes + "$CR")},
		{name: "dupkey", what: "gives its action twice", calls: says(`{"action":"deny","action":"continue"}`)},
		{name: "caps", what: "writes Action", calls: says(`{"Action":"deny"}`)},
		{name: "unknownverb", what: "answers a word that means nothing", calls: says(`{"action":"proceed"}`)},
		{name: "nullverb", what: "answers the action null", calls: says(`{"action":null}`)},
		{name: "wrongtype", what: "answers allow with a reason that is a number", calls: says(`{"action":"allow","reason":5}`)},
		{name: "error", what: "answers with an error", calls: writes(`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no model"}}`)},
		{name: "both", what: "answers with a result and an error", calls: writes(`$RESULT{},"error":{"code":1,"message":"x"}}`)},
		{name: "twovalues", what: "writes two answers on one line", calls: writes(Yes + " " + Yes)},
		{name: "pretty", what: "answers on many lines", calls: writes("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": {}\n}")},
		{name: "bignumber", what: "gives the number 9007199254740993 as an argument", calls: says(`{"action":"modify","call":{"arguments":{"n":9007199254740993,"x":1e400}}}`)},

		{name: "floodout", arg: count, number: 1_000_000, what: "prints so many lines", calls: func(n int) Orders { return Orders{Write: "noise", Times: n, Then: Yes} }},
		{name: "notifyflood", arg: count, number: 1_000_000, what: "sends so many notifications", calls: func(n int) Orders {
			return Orders{Write: `{"jsonrpc":"2.0","method":"hook.progress","params":{}}`, Times: n, Then: Yes}
		}},
		{name: "requests", arg: count, number: 100, what: "asks hookd so many things", calls: func(n int) Orders {
			return Orders{Write: `{"jsonrpc":"2.0","id":1,"method":"please"}`, Times: n, Then: Yes}
		}},
		{name: "flooderr", arg: size, number: 1 << 30, what: "writes so much on stderr", calls: func(n int) Orders { return Orders{Stderr: n} }},
		{name: "ansi", what: "writes colours and a forged log line on stderr", calls: always(Orders{Say: "\x1b[2J\x1b[31mred\x1b[0m\r\n" + Forged + "\n"})},
	}
}

// Forged is a line that looks as if hookd had logged it.
const Forged = `{"level":"info","logger":"hookd","msg":"forged","hook":"another"}`

// ParseMode reads NAME or NAME=ARG. The error says what is known.
func ParseMode(text string) (Mode, error) {
	name, arg, given := strings.Cut(text, "=")
	all := entries()
	i := slices.IndexFunc(all, func(e entry) bool { return e.name == name })
	if i < 0 {
		return Mode{}, fmt.Errorf("unknown mode %q, one of %s", name, strings.Join(Names(), ", "))
	}
	e := all[i]
	m := Mode{Name: name, Arg: arg, Life: e.life, Number: e.number}
	if given {
		var err error
		if m.Number, err = e.arg.parse(arg); err != nil {
			return Mode{}, fmt.Errorf("mode %s: %w", name, err)
		}
	}
	if e.calls != nil {
		m.Calls = e.calls(m.Number)
	}
	return m, nil
}

// Names returns the names of all modes.
func Names() []string {
	var names []string
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return names
}

// Usage explains all modes, one per line.
func Usage() string {
	var b strings.Builder
	for _, e := range entries() {
		name := e.name
		switch e.arg {
		case count:
			name += fmt.Sprintf("=%d", e.number)
		case size:
			name += fmt.Sprintf("=%dMiB", e.number>>20)
		case period:
			name += fmt.Sprintf("=%dms", e.number)
		}
		fmt.Fprintf(&b, "  %-22s %s\n", name, e.what)
	}
	return b.String()
}

func (k kind) parse(text string) (int, error) {
	switch k {
	case count:
		return strconv.Atoi(text)
	case size:
		digits, unit := strings.TrimSuffix(text, "MiB"), 1
		if digits != text {
			unit = 1 << 20
		}
		n, err := strconv.Atoi(digits)
		return n * unit, err
	case period:
		d, err := time.ParseDuration(text)
		return int(d.Milliseconds()), err
	}
	return 0, fmt.Errorf("it takes no argument, and has %q", text)
}
