// Package gobuild compiles programs of this repository for those who need them
// as processes: tests and the soak.
package gobuild

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/hookd/hookd/child"
)

// Program compiles the main package at an import path into a folder and returns
// the path of the program. It must be called within the module. What the
// compiler says goes to standard error.
func Program(folder, importPath string) (string, error) {
	program := filepath.Join(folder, path.Base(importPath))
	goTool, err := child.Resolve("go", "")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	p, err := os.StartProcess(goTool, []string{"go", "build", "-o", program, importPath}, &os.ProcAttr{
		Files: []*os.File{nil, os.Stderr, os.Stderr},
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("go build: %s", state)
	}
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	return program, nil
}
