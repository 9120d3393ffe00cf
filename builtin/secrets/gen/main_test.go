package main

import (
	"os"
	"strings"
	"testing"
)

// TestFresh fails when the embedded rules are not those of the module that
// go.mod names.
func TestFresh(t *testing.T) {
	want, err := rules()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../rules/gitleaks.json")
	if err != nil {
		t.Fatal(err)
	}
	// A test does not know the versions of its modules, so the first lines differ.
	if body(string(got)) != body(string(want)) {
		t.Error("the rules are not fresh: go generate ./builtin/secrets")
	}
}

func body(text string) string {
	_, after, _ := strings.Cut(text, `"license"`)
	return after
}
