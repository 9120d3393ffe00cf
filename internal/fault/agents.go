package fault

import (
	"fmt"
	"strings"
)

// Agent is a way in which an agent can go wrong, as a script for the program
// internal/faultagent.
type Agent struct {
	Name, What string
	Script     []string
}

// hundredMB is the size of a line that no limit allows.
const hundredMB = 100 << 20

// Agents are all scripts. They ask about a tool of this name, and each ends by
// itself or when hookd closes the connection. Calls have the ids 1, 2, 3, …
func Agents(tool string) []Agent {
	params := fmt.Sprintf(`{"tool":%q,"arguments":{}}`, tool)
	call := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"hook.before_tool","params":%s}`, id, params)
	}
	slow := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":%q,"arguments":{},"context":{"late_ms":300}}}`, tool)
	event := `{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"x_storm","payload":{"n":$N}}}`
	return []Agent{
		{"leaves", "asks and is gone", []string{"send=" + slow, "wait=50ms", "close"}},
		{"dies", "asks and is killed", []string{"send=" + slow, "wait=50ms", "die"}},
		{"half-close", "asks, closes its side and reads the answer", []string{"send=" + call("1"), "half-close", "rest"}},
		{"cancel", "asks, and takes it back", []string{"send=" + slow, `send={"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, "read", "close"}},
		{"cancel-others", "takes back what it never asked", []string{`flood=20:{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":$N}}`, "send=" + call("1"), "read", "close"}},
		{"slowloris", "writes a byte per second", []string{"listen", "drip=1s:" + call("1"), "rest"}},
		{"silent", "connects and says nothing for three seconds", []string{"wait=3s", "close"}},
		{"pipeline", "asks 10,000 times without waiting", []string{"listen", "flood=10000:" + call("$N"), "half-close", "rest"}},
		{"deaf", "asks 10,000 times and reads nothing", []string{"flood=10000:" + call("$N"), "wait=6s", "close"}},
		{"batch", "sends an array of calls", []string{"send=[" + call("1") + "," + call("2") + "]", "read", "close"}},
		{"duplicate-id", "uses an id twice at once", []string{"send=" + slow, "send=" + call("1"), "read=2", "close"}},
		{"strange-ids", "uses ids that are none", []string{
			"send=" + call("null"), "send=" + call("1.5"), "send=" + call("-1"), "send=" + call("9007199254740993"), "send=" + call("{}"), "read=5", "close"}},
		{"garbage", "sends what is no JSON", []string{"send=hello", `send={"jsonrpc":`, "send=\x00", "send=\xff\xfe", "read=4", "close"}},
		{"wrong-types", "sends members of the wrong type", []string{
			`send={"jsonrpc":"1.0","id":1,"method":"hook.before_tool","params":` + params + `}`,
			`send={"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":[1]}`,
			`send={"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":5,"arguments":{}}}`, "read=3", "close"}},
		{"no-id", "asks without an id", []string{`send={"jsonrpc":"2.0","method":"hook.before_tool","params":` + params + `}`, "send=" + call("1"), "read", "close"}},
		{"unknown-method", "asks for what is not there", []string{`send={"jsonrpc":"2.0","id":1,"method":"hook.nothing","params":{}}`, "read", "close"}},
		{"version99", "speaks another protocol", []string{`send={"jsonrpc":"2.0","id":1,"method":"hook.hello","params":{"name":"x","version":99}}`, "rest"}},
		{"endless", "writes a line that does not end", []string{"listen", fmt.Sprintf("pad=%d", 2*hundredMB), "rest"}},
		{"blank-lines", "sends nothing but line ends", []string{"listen", "flood=1000:", "rest"}},
		{"storm", "sends 10,000 events at once", []string{"flood=10000:" + event, "send=" + call("1"), "read", "close"}},
	}
}

// FindAgent returns the script of a name. The error says what is known.
func FindAgent(name, tool string) (Agent, error) {
	var names []string
	for _, a := range Agents(tool) {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Agent{}, fmt.Errorf("unknown mode %q, one of %s", name, strings.Join(names, ", "))
}
