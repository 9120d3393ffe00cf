package shell

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// bash runs lines for real, in a folder in which the command zap leaves a mark
// and few other programs are there.
type bash struct{ path, bin, root string }

func newBash(t *testing.T) *bash {
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	root := t.TempDir()
	b := &bash{path: path, bin: filepath.Join(root, "bin"), root: root}
	require.NoError(t, os.Mkdir(b.bin, 0o700))
	// The descriptor tells which line it was, whatever happened to the environment.
	require.NoError(t, os.WriteFile(filepath.Join(b.bin, "zap"), []byte("#!/bin/sh\necho zap >&9\n"), 0o700))
	for _, name := range []string{"bash", "sh", "env", "xargs", "timeout", "nice", "nohup", "setsid", "stdbuf", "find", "cat", "base64", "tr", "ls", "sed", "sleep", "dirname", "cp", "ln", "chmod", "tee"} {
		if at, err := exec.LookPath(name); err == nil {
			require.NoError(t, os.Symlink(at, filepath.Join(b.bin, name)))
		}
	}
	return b
}

// zaps reports whether a line runs zap.
func (b *bash) zaps(t *testing.T, line string) bool {
	dir, err := os.MkdirTemp(b.root, "dir")
	require.NoError(t, err)
	mark, err := os.Create(filepath.Join(dir, "mark"))
	require.NoError(t, err)
	defer mark.Close()
	cmd := exec.CommandContext(t.Context(), b.path, "-c", line+"\nwait")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + b.bin, "HOME=" + dir}
	cmd.ExtraFiles = []*os.File{6: mark} // descriptor 9
	_ = cmd.Run()                        // many lines end badly
	info, err := mark.Stat()
	require.NoError(t, err)
	return info.Size() > 0
}

// TestAgainstBash holds the reading against bash itself: whenever a line runs
// zap, the reading must say that it may.
func TestAgainstBash(t *testing.T) {
	b := newBash(t)
	var reader Reader
	lines := append(tricks(), generated(20)...)
	var ran atomic.Int32
	t.Run("lines", func(t *testing.T) {
		for _, line := range lines {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				if b.zaps(t, line) {
					ran.Add(1)
					got := reader.Read(line)
					require.True(t, got.MayRun("zap"), "bash runs zap, the reading misses it: %q\n%+v", line, got)
				}
			})
		}
	})
	t.Logf("%d of %d lines ran zap", ran.Load(), len(lines))
	require.Greater(t, int(ran.Load()), len(lines)/2, "the lines are meant to run zap")
}

// tricks are lines in which zap is hard to see.
func tricks() []string {
	return []string{
		"zap", "z''ap", `z\ap`, `"z"ap`, `$'\x7aap'`, `$'\172ap'`, `$'\u007aap'`, "z${X}ap", "z$@ap", "zap${IFS}-x", "{zap,-x}", "{,zap} -x", "z\\\nap",
		"a=zap; $a", "a=z b=ap; $a$b", "a=z; a+=ap; $a", "a='zap -x'; $a", "IFS=,; a=zap,-x; $a", "a=(ls zap); ${a[1]}", `a=(zap -x); "${a[@]}"`,
		`set -- zap -x; "$@"`, `set zap; $1`, "set -- a b zap; shift 2; $1", "read a <<< zap; $a", "printf -v a zap; $a", "a=b; b=zap; ${!a}",
		"declare -n a=b; b=zap; $a", "a=ZAP; ${a,,}", "a=xzap; ${a#x}", "a=xap; ${a/x/z}", "${a:-zap}", "a=; ${a:=zap}; $a", ": ${a:=zap}; $a",
		"a=ls; for i in 1 2; do $a; a=zap; done", "a=ls; b=ls; for i in 1 2 3; do $a; a=$b; b=zap; done", "a=ls; f(){ a=zap; }; f; $a",
		"a=zap; (a=ls); $a", "a=zap; a=ls | true; $a", "a=zap; a=ls & wait; $a", "a=zap; false && a=ls; $a", "a=zap; if false; then a=ls; fi; $a",
		"a=zap; a=ls $a", "a=ls; trap '$a' EXIT; a=zap", "trap zap EXIT", "f(){ $1 -x; }; f zap", `f(){ "$@"; }; f zap`, "f(){ g; }; g(){ zap; }; f",
		"f(){ f(){ zap; }; }; f; f", "eval 'f(){ zap; }'; f", "eval 'a=zap'; $a", "eval z''ap", `eval "$(echo zap)"`, "eval eval zap",
		"ls(){ zap; }; ls", "command_not_found_handle(){ zap; }; nosuch", "shopt -s expand_aliases\nalias l='zap -x'\nl", "shopt -s expand_aliases\nalias l=env\nl zap",
		"bash -c zap", "bash -c 'bash -c zap'", "sh -ec zap", "bash -o pipefail -c zap", "bash -euo pipefail -c zap", "bash -c '$0' zap", "bash -c '\"$1\"' x zap",
		"bash <<< zap", "bash <<'E'\nzap\nE", "a=zap\nbash <<E\n$a\nE", "bash -s <<-E\n\tzap\n\tE\n", "echo zap | bash", "echo emFw | base64 -d | sh",
		"cat <<E | sh\nzap\nE", "echo zap > x; sh x", "echo zap > x; . ./x", "echo zap >x; bash <x", "bash <(echo zap)", ". <(echo zap)", "source /dev/stdin <<< zap",
		"bash /dev/fd/3 3<<< zap", "exec 3<<< zap; bash <&3", "echo zap | while read a; do $a; done", "echo zap | xargs env", "echo zap | xargs -I% sh -c %",
		"echo zap | xargs -I{} {}", "echo x | xargs zap", "echo x | xargs -n1 -P2 env zap", "xargs -a /dev/null zap", "find . -maxdepth 0 -exec zap {} +",
		"find . -maxdepth 0 -exec sh -c 'zap' \\;", "env zap", "env -S zap", "env -S'zap -x'", "env -i PATH=$PATH zap", "env -u X A=1 zap", "command zap", "builtin eval zap",
		"exec zap", "exec -a x zap", "nice -n 5 zap", "nice -5 zap", "nohup zap", "timeout 5 zap", "timeout -s KILL 5 zap", "stdbuf -oL zap", "setsid -w zap", "time zap", "! zap",
		"coproc zap; wait", "(zap)", "{ zap; }", "if zap; then :; fi", "while zap; do break; done", "until zap; do break; done", "for i in 1; do zap; done",
		"for ((i=0;i<1;i++)); do zap; done", "case x in x) zap;; esac", "case $(zap) in *) ;; esac", "select i in a; do zap; break; done <<< 1", "[[ -n $(zap) ]]",
		"echo $(zap)", "echo `zap`", `echo "$(zap)"`, "cat <(zap)", "true > >(zap)", "echo $((`zap`1))", "a=$(zap)", "a[$(zap)1]=x", "cat <<E\n$(zap)\nE", ": ${x:-$(zap)}",
		"a='b[$(zap)]'; echo $((a))", "a='b[$(zap)]'; [[ a -eq 1 ]]", "let 'a[$(zap)1]=1'", "test -v 'a[$(zap)]'", "a='$(zap)'; echo ${a@P}", "ls; zap", "true && zap", "false || zap",
		"ls & zap", "ls\nzap", "ls | zap", "ls |& zap", "# x\nzap", "ls \\\n; zap", ": <<E\nE\nzap", ": <<E\n x\nE\nzap\n", "echo a \\\r\nzap", ": <<E\nE\r\n: <<F\nE\nzap\nF\n",
		"hash -p $(command -v zap) ls; ls", "cp $(command -v zap) x; ./x", "ln -s $(command -v zap) x2; ./x2", "PROMPT_COMMAND=zap bash -i -c : <<< ''", "BASH_ENV=<(echo zap) bash -c :",
		"$(command -v zap)", `"$(command -v zap)"`, "~+/../bin/zap", "../bin/zap", "../b*/zap", "../bin/z[a]p", "../bin/za?", "cd ../bin; ./zap",
		"a=zap\nexport a\nbash -c '$a'", "a=zap bash -c '$a'", "set -a; a=zap; bash -c '$a'", "f(){ zap; }; export -f f; bash -c f", "mapfile -t a <<< zap; $a", "sed 's/.*/zap/e' <<< x", "sed '1e zap' <<< x", "sed -n '1!d;e zap' <<< x",
		"declare -i 'a=b[$(zap)]'", "declare 'a[$(zap)]=1'", "[[ -v 'a[$(zap)]' ]]", "getopts a 'a[$(zap)]' -a", "ln -s $(command -v zap) ls2; PATH=.:$PATH ls2", "echo zap > .bashrc; HOME=$PWD bash -i -c : <<< ''",
		"echo 'e zap' > s; sed -f s <<< x", "echo zap > f; ENV=./f bash --posix -i -c : <<< ''", "cp $(command -v zap) q; chmod +x q; env ./q", "echo zap > a; set -- a; sh $1", "echo zap > a; xargs sh <<< a", "echo zap > a; cat a | sh", "tee b <<< zap; sh b", "echo zap > x.sh; sh x*", "env 'BASH_FUNC_ls%%=() { zap; }' bash -c ls", "PS4='$(zap)' bash -xc ls",
	}
}

// generated makes n lines at random, the same in every run.
func generated(n int) []string {
	g := &generator{rand.New(rand.NewPCG(1, 2))}
	var lines []string
	for range n {
		lines = append(lines, g.line(1+g.IntN(4)))
	}
	return lines
}

type generator struct{ *rand.Rand }

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) word() string {
	return g.pick("zap", "z''ap", `z\ap`, `"zap"`, `$'\x7aap'`, "za${X}p", "{zap,x}", "zap${IFS}x", "$(echo zap)", "env zap", "command zap", "nice zap")
}

// line puts zap into constructs around constructs. % is a line, & one in quotes
// and @ a single command.
func (g *generator) line(depth int) string {
	if depth == 0 {
		return g.word()
	}
	form := g.pick(
		"bash -c &", "sh -c &", "eval &", "bash <<< &", "bash <<'E'\n%\nE\n", "echo $(%\n)", "cat <(%\n)", "(%\n)", "{ %\n}", "if true; then %\nfi",
		"for i in 1 2; do %\ndone", "while true; do %\nbreak; done", "case x in x) %\n;; esac", "f() { %\n}\nf", "false || @", "true && @", "true; @", "@ & wait", "! @",
		"a=&\neval \"$a\"", "a=&\nbash -c \"$a\"", "a=ls; a=&; eval \"$a\"", "trap & EXIT", "echo & | sh", "timeout 5 bash -c &", "env A=1 bash -c &",
		"xargs -I{} sh -c & <<< x", "find . -maxdepth 0 -exec sh -c & \\;", "f() { \"$@\"; }\nf bash -c &", "a=(bash -c &)\n\"${a[@]}\"", "set -- &\neval \"$1\"",
		"for a in ls &; do eval \"$a\"; done", "a=x; [ $a = x ] && { %\n}", "cat <<E\n$(%\n)\nE\n", "x=ls; for i in 1 2; do eval $x; x=&; done", "exec bash -c &",
		"IFS=: ; %", "true | { %\n}", "%\n%", "a=1 %", "export A=&; bash -c 'eval \"$A\"'", "[[ -n x ]] && %", "time %", "echo \"`echo x; (%\n)`\"",
	)
	inner := g.line(depth - 1)
	form = strings.ReplaceAll(form, "%", inner)
	single := inner
	if strings.ContainsAny(inner, "\n;&|") {
		single = "{ " + inner + "\n}"
	}
	form = strings.ReplaceAll(form, "@", single)
	return replaceAmp(form, "'"+strings.ReplaceAll(inner, "'", `'\''`)+"'")
}

// replaceAmp replaces a lone & that stands for a quoted line.
func replaceAmp(form, quoted string) string {
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		alone := form[i] == '&' && (i == 0 || form[i-1] != '&' && form[i-1] != '\\') && (i+1 == len(form) || form[i+1] != '&')
		if alone && !strings.HasPrefix(form[i:], "& wait") {
			b.WriteString(quoted)
		} else {
			b.WriteByte(form[i])
		}
	}
	return b.String()
}
