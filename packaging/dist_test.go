package packaging_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The archive of this system: the same bytes twice, what people need is inside,
// and it works as docs/operations.md says.
func TestDist(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("dist.sh needs GNU tar")
	}
	if exec.Command("git", "rev-parse", "--git-dir").Run() != nil {
		t.Skip("this is no git clone, so there is no version")
	}
	dist := func() (dir, sums string) {
		dir = t.TempDir()
		cmd := exec.Command("./dist.sh", dir, runtime.GOOS+"/"+runtime.GOARCH)
		cmd.Env = append(os.Environ(), "SBOM=0") // the tool for it is large
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		require.NoError(t, err)
		return dir, string(text)
	}
	dir, first := dist()
	_, second := dist()
	require.Equal(t, first, second, "the same files give other bytes, or one was edited meanwhile")

	sh := func(command string) string {
		cmd := exec.Command("bash", "-euc", command)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	require.Regexp(t, `^hookd-v\S+-linux-\w+\.tar\.gz: OK\n$`, sh("sha256sum --check --ignore-missing SHA256SUMS"))
	version := regexp.MustCompile(`hookd-(v\S+)-linux-`).FindStringSubmatch(first)[1]
	dir = strings.TrimSpace(sh("tar -xzf hookd-v*-linux-*.tar.gz && cd hookd-v*/ && pwd"))
	sh("install -m 0755 hookd bin-of-it && install -D -m 0644 -t man/man1 share/man1/*.1 && install -D -m 0644 share/completions/hookd.bash completion")
	require.Contains(t, sh("./bin-of-it version"), "hookd "+version+" (protocol 1, go")
	for _, file := range []string{
		"README.md", "LICENSE", "config.example.json", "config.schema.json", "schema/request.schema.json", "docs/operations.md",
		"share/completions/_hookd", "share/completions/hookd.fish", "packaging/systemd/hookd.service",
		"packaging/systemd/user/hookd.socket", "packaging/launchd/hookd.plist", "share/man1/hookd-serve.1",
	} {
		require.FileExists(t, filepath.Join(dir, file))
	}
	sh("./hookd check --no-start config.example.json")
	require.Contains(t, sh("./hookd __complete resta"), "restart\t")
	if _, err := exec.LookPath("man"); err == nil {
		// Indented text stays as it is, and the formatter has nothing to say.
		require.Regexp(t, `\n +user_message before_agent [a-z_ ]+\n`, sh("man --warnings ./share/man1/hookd-call.1"))
		require.NotContains(t, sh("for f in ./share/man1/*.1; do man --warnings $f 2>&1 >/dev/null; done; echo ok"), "warning")
	}
}

// launchd itself is the only one who can say more.
func TestPlistIsXML(t *testing.T) {
	t.Parallel()
	file, err := os.Open("launchd/hookd.plist")
	require.NoError(t, err)
	defer file.Close()
	for d := xml.NewDecoder(file); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
