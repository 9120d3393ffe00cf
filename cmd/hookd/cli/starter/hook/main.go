// Command hook is a hook for hookd: it reads a line of JSON, and writes a line of JSON.
package main

import (
	"encoding/json"
	"os"
	"strings"
)

type object = map[string]any

// judge answers a call. An empty answer objects to nothing; to the greeting it means yes.
func judge(method string, params object) object {
	arguments, _ := params["arguments"].(object)
	command, _ := arguments["command"].(string)
	if method == "hook.before_tool" && strings.Contains(command, "rm -rf") {
		return object{"action": "deny", "reason": "rm -rf is not for agents"}
	}
	return object{}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for request := make(object); in.Decode(&request) == nil; request = make(object) {
		if id, ok := request["id"]; ok { // else it is an event, and nobody waits for an answer
			params, _ := request["params"].(object)
			out.Encode(object{"jsonrpc": "2.0", "id": id, "result": judge(request["method"].(string), params)})
		}
	}
}
