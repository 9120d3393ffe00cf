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

// ReadConfig reads the config of a built-in strictly into the struct that into
// points to: unknown keys, keys that stand twice and wrong types are errors. No
// config and null leave it as it is. The error is a *[ConfigError].
func ReadConfig(config jsontext.Value, into any) error {
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
	pointer := semantic.JSONPointer
	if errors.Is(err, json.ErrUnknownName) {
		name := pointer.LastToken()
		known := keys(reflect.TypeOf(into), pointer.Parent())
		return &ConfigError{string(pointer), fmt.Errorf("unknown key %q%s", name, protocol.DidYouMean(name, known))}
	}
	if semantic.GoType == nil {
		return &ConfigError{string(pointer), semantic.Err}
	}
	got := semantic.JSONKind.String()
	if semantic.JSONKind == '0' && len(semantic.JSONValue) > 0 {
		got = string(semantic.JSONValue) // 1.5 where an integer is wanted
	}
	return &ConfigError{string(pointer), fmt.Errorf("expected %s, got %s", wanted(semantic.GoType), got)}
}

// keys returns the JSON names of the struct that stands at a place in t.
func keys(t reflect.Type, at jsontext.Pointer) []string {
	for token := range at.Tokens() {
		t = element(t)
		if t.Kind() == reflect.Struct {
			field, ok := fieldNamed(t, token)
			if !ok {
				return nil
			}
			t = field
		} else if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
	}
	var names []string
	if t = element(t); t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name := jsonName(f); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if jsonName(f) == name {
			return f.Type, true
		}
	}
	return nil, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func wanted(t reflect.Type) string {
	switch t = element(t); t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer, 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return t.String()
}
