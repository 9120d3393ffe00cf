// Package builtin holds the hooks that ship with hookd and run inside it. None
// of them registers itself: whoever wants one hands its functions to the
// registry of package mount.
package builtin

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// ConfigError says what is wrong in the config of a built-in, and where.
type ConfigError struct {
	// Pointer is the place as a JSON Pointer into the config; "" is all of it.
	Pointer string
	Err     error
}

// Error returns the place and the reason.
func (e *ConfigError) Error() string {
	if e.Pointer == "" {
		return e.Err.Error()
	}
	return e.Pointer + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// JSONPointer returns the place, for those who don't know the type.
func (e *ConfigError) JSONPointer() string { return e.Pointer }

// readConfig reads config strictly into the struct that into points to. No
// config and null leave it as it is. The error is a *ConfigError.
func readConfig(config jsontext.Value, into any) error {
	if len(config) == 0 || config.Kind() == 'n' {
		return nil
	}
	err := json.Unmarshal(config, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return &ConfigError{Err: protocol.JSONError(err)}
	}
	pointer := string(semantic.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		name := semantic.JSONPointer.LastToken()
		return &ConfigError{pointer, fmt.Errorf("unknown key %q%s", name, protocol.DidYouMean(name, keys(into)))}
	}
	return &ConfigError{pointer, fmt.Errorf("expected %s, got %s", wanted(semantic.GoType), semantic.JSONKind)}
}

// keys returns the JSON names of the struct that v points to.
func keys(v any) []string {
	var names []string
	for t, i := reflect.TypeOf(v).Elem(), 0; i < t.NumField(); i++ {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct:
		return "an object"
	}
	return t.String()
}
