package thin

// Usage is what --help shows.
const Usage = `hookd-hook asks the hookd daemon about one event of a coding agent.

  hookd-hook --agent NAME --event EVENT [flags] < payload.json

The agent's hook payload comes on standard input; the answer, in the agent's own
words, goes to standard output. It is what "hookd install" writes into an agent's
hook config, and does the same as "hookd hook".

  --agent NAME          the agent: hookd agents lists them; auto (default) looks
                        at the payload
  --event EVENT         the agent's own name for the event; auto: the payload says
  --on-unavailable X    what to answer when no daemon does: deny (default, where
                        the event can deny), continue (or allow), ask
  --approve             let hookd's approvers decide what a hook asks about,
                        instead of the agent's own prompt
  --autostart           start a daemon when there is none
  --timeout D           how long it may take, such as 25s or 900ms; keep it below
                        the agent's own limit (default 25s)
  --max-bytes N         the largest payload (default 16777216)
  --socket PATH         the daemon's socket (default: the standard place)
  --dry-run             judge without any effect
  --version             print the version
`

// version is set when a release is built (-ldflags -X).
var version = "(devel)"

// Parse reads the command line of hookd-hook. help: the usage is wanted.
func Parse(args []string) (o Options, help bool, bad Failure) {
	for len(args) > 0 {
		name, value, joined := cut(args[0])
		args = args[1:]
		switch name {
		case "-h", "--help":
			return o, true, ""
		case "--version":
			o.Version = true
			return o, false, ""
		case "--approve", "--autostart", "--dry-run":
			on := !joined || value == "true"
			if joined && value != "true" && value != "false" {
				return o, false, Failure(name + " takes true or false, or nothing")
			}
			switch name {
			case "--approve":
				o.Approve = on
			case "--autostart":
				o.Autostart = on
			default:
				o.DryRun = on
			}
			continue
		}
		if !joined {
			if len(args) == 0 {
				return o, false, Failure(name + ": unknown, or its value is missing; see hookd-hook --help")
			}
			value, args = args[0], args[1:]
		}
		ok := true
		switch name {
		case "--agent":
			o.Agent = value
		case "--event":
			o.Event = value
		case "--socket":
			o.Socket = value
		case "--on-unavailable":
			if value == "allow" {
				value = "continue"
			}
			o.OnUnavailable = value
			ok = value == "continue" || value == "deny" || value == "ask"
		case "--timeout":
			o.TimeoutMS, ok = duration(value)
		case "--max-bytes":
			o.MaxBytes, ok = natural(value)
		default:
			return o, false, Failure(name + ": unknown; see hookd-hook --help")
		}
		if !ok {
			return o, false, Failure(name + ": \"" + value + "\" can't be read; see hookd-hook --help")
		}
	}
	return o, false, ""
}

// cut parts --name=value.
func cut(arg string) (name, value string, joined bool) {
	for i := range len(arg) {
		if arg[i] == '=' {
			return arg[:i], arg[i+1:], true
		}
	}
	return arg, "", false
}

// duration reads whole seconds or milliseconds: 5s, 900ms.
func duration(text string) (ms int, ok bool) {
	unit := 0
	switch n := len(text); {
	case n > 2 && text[n-2:] == "ms":
		text, unit = text[:n-2], 1
	case n > 1 && text[n-1] == 's':
		text, unit = text[:n-1], 1000
	case n > 1 && text[n-1] == 'm':
		text, unit = text[:n-1], 60_000
	default:
		return 0, false
	}
	n, ok := natural(text)
	return n * unit, ok && n <= 24*60*60*1000
}

func natural(text string) (n int, ok bool) {
	if text == "" || len(text) > 9 {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, n > 0
}
